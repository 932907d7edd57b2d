{{/* What src/numalign/deploy/objects/common.py says in Python; tests compare the objects of both. */}}

{{/* Mappings as one, later ones win; empty text if nothing is left. */}}
{{- define "numalign.merged" -}}
{{- $all := dict -}}
{{- range . -}}
{{- range $key, $value := . -}}
{{- $_ := set $all $key $value -}}
{{- end -}}
{{- end -}}
{{- if $all }}{{ toYaml $all }}{{ end -}}
{{- end -}}

{{- define "numalign.name" -}}
{{- .Values.nameOverride | default "numalign" -}}
{{- end -}}

{{/* At most 40 characters: names get a component and a node group. */}}
{{- define "numalign.fullname" -}}
{{- $name := include "numalign.name" . -}}
{{- $long := printf "%s-%s" .Release.Name $name -}}
{{- if contains $name .Release.Name -}}
{{- $long = .Release.Name -}}
{{- end -}}
{{- .Values.fullnameOverride | default $long | trunc 40 | trimAll "-" -}}
{{- end -}}

{{- define "numalign.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{/* dict root component */}}
{{- define "numalign.component" -}}
{{- printf "%s-%s" (include "numalign.fullname" .root) .component -}}
{{- end -}}

{{/* dict root component */}}
{{- define "numalign.selector" -}}
app.kubernetes.io/name: {{ include "numalign.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
{{- end -}}

{{/* dict root component */}}
{{- define "numalign.ownLabels" -}}
{{ include "numalign.selector" . }}
app.kubernetes.io/part-of: numalign
app.kubernetes.io/managed-by: {{ .root.Release.Service | quote }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end -}}

{{/* dict root component name [cluster] [namespace] [labels] [annotations] */}}
{{- define "numalign.metadata" -}}
name: {{ .name | quote }}
{{- if not .cluster }}
namespace: {{ .namespace | default (include "numalign.namespace" .root) | quote }}
{{- end }}
labels:
  {{- $own := include "numalign.ownLabels" . | fromYaml }}
  {{- include "numalign.merged" (list (.labels | default dict) .root.Values.commonLabels $own) | nindent 2 }}
{{- with include "numalign.merged" (list .root.Values.commonAnnotations (.annotations | default dict)) }}
annotations:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* dict root image */}}
{{- define "numalign.image" -}}
{{- $global := .root.Values.global -}}
{{- with $global.imageRegistry | default .image.registry }}{{ . }}/{{ end -}}
{{- .image.repository -}}
{{- if .image.digest -}}
@{{ .image.digest }}
{{- else -}}
:{{ .image.tag | default $global.imageTag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* dict root component settings */}}
{{- define "numalign.account" -}}
{{- .settings.serviceAccount.name | default (include "numalign.component" .) -}}
{{- end -}}

{{/* dict root component settings */}}
{{- define "numalign.serviceAccount" -}}
{{- if .settings.serviceAccount.create }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- $about := dict "name" (include "numalign.account" .) "annotations" .settings.serviceAccount.annotations }}
  {{- include "numalign.metadata" (merge $about (pick . "root" "component")) | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Roles and bindings from the table of rights: dict root component settings options [table or tables]
[lease]. The namespace @ is that of the release. */}}
{{- define "numalign.rbac" -}}
{{- if .root.Values.rbac.create }}
{{- $rights := .root.Files.Get "files/rights.json" | fromJson }}
{{- $byNamespace := dict }}
{{- range $table := .tables | default (list (.table | default .component)) }}
{{- range $right := get $rights $table }}
{{- $wanted := or (not $right.option) (has $right.option $.options) }}
{{- $namespace := $right.namespace }}
{{- if eq $namespace "@" }}
{{- $namespace = include "numalign.namespace" $.root }}
{{- end }}
{{- $rule := deepCopy $right.rule }}
{{- if $right.lease }}
{{- $wanted = and $wanted $.lease }}
{{- if $wanted }}
{{- $namespace = $.lease.resourceNamespace }}
{{- if $rule.resourceNames }}
{{- $_ := set $rule "resourceNames" (list $.lease.resourceName) }}
{{- end }}
{{- end }}
{{- end }}
{{- if $wanted }}
{{- $_ := set $byNamespace $namespace (append (get $byNamespace $namespace | default list) $rule) }}
{{- end }}
{{- end }}
{{- end }}
{{- $name := include "numalign.component" . }}
{{- range $namespace, $rules := $byNamespace }}
{{- $kind := ternary "Role" "ClusterRole" (ne $namespace "") }}
{{- $about := dict "root" $.root "component" $.component "name" $name "namespace" $namespace "cluster" (eq $namespace "") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  {{- include "numalign.metadata" $about | nindent 2 }}
rules:
  {{- toYaml $rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  {{- include "numalign.metadata" $about | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name | quote }}
subjects:
  {{- include "numalign.subject" $ | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* dict root component settings */}}
{{- define "numalign.subject" -}}
- kind: ServiceAccount
  name: {{ include "numalign.account" . | quote }}
  namespace: {{ include "numalign.namespace" .root | quote }}
{{- end -}}

{{- define "numalign.onOpenshift" -}}
{{- if and .Values.openshift.scc (.Capabilities.APIVersions.Has "security.openshift.io/v1") }}true{{ end -}}
{{- end -}}

{{/* OpenShift's own rule for pods that choose their user, except root: dict root component settings */}}
{{- define "numalign.nonRootAccount" -}}
{{- if include "numalign.onOpenshift" .root }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- $about := dict "name" (printf "%s-scc" (include "numalign.component" .)) }}
  {{- include "numalign.metadata" (merge $about (pick . "root" "component")) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: system:openshift:scc:nonroot-v2
subjects:
  {{- include "numalign.subject" . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Its ports in, pages for some alone; the API server, DNS and, for agents, the kubelet out:
dict root component settings [kubelet] [ports] */}}
{{- define "numalign.networkPolicy" -}}
{{- $wanted := .root.Values.networkPolicy }}
{{- if $wanted.enabled }}
{{- $ports := $wanted.apiServerPorts }}
{{- if .kubelet }}
{{- $ports = append $ports $wanted.kubeletPort }}
{{- end }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- $about := dict "name" (include "numalign.component" .) }}
  {{- include "numalign.metadata" (merge $about (pick . "root" "component")) | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "numalign.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    - ports:
        - port: {{ int .settings.port }}
          protocol: TCP
      {{- with $wanted.ingressFrom }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- with .ports }}
    - ports:
        {{- range . }}
        - port: {{ int .port }}
          protocol: TCP
        {{- end }}
    {{- end }}
  {{- if or $ports $wanted.dns }}
  egress:
    {{- if $ports }}
    - ports:
        {{- range $ports }}
        - port: {{ int . }}
          protocol: TCP
        {{- end }}
    {{- end }}
    {{- if $wanted.dns }}
    - ports:
        - port: 53
          protocol: UDP
        - port: 53
          protocol: TCP
    {{- end }}
  {{- else }}
  egress: []
  {{- end }}
{{- end }}
{{- end -}}

{{/* dict probe path scheme */}}
{{- define "numalign.probe" -}}
httpGet:
  path: {{ .path }}
  port: pages
  scheme: {{ .scheme }}
{{- with .probe.initialDelaySeconds }}
initialDelaySeconds: {{ int . }}
{{- end }}
periodSeconds: {{ int .probe.periodSeconds }}
timeoutSeconds: {{ int .probe.timeoutSeconds }}
failureThreshold: {{ int .probe.failureThreshold }}
{{- end -}}

{{/* dict root component settings command args scheme liveness [readiness] [env] [mounts] [pages] [ports] */}}
{{- define "numalign.container" -}}
name: {{ .component }}
image: {{ include "numalign.image" (dict "root" .root "image" .settings.image) | quote }}
imagePullPolicy: {{ .settings.image.pullPolicy }}
terminationMessagePolicy: FallbackToLogsOnError
command:
  {{- toYaml .command | nindent 2 }}
args:
  {{- range .args }}
  - {{ . | quote }}
  {{- end }}
  - {{ printf "--bind-address=%s" .settings.bindAddress | quote }}
  - {{ printf "%s=%d" (.pages | default "--port") (int .settings.port) | quote }}
  - "-v"
  - {{ int .settings.verbosity | quote }}
  - {{ printf "--log-format=%s" .settings.logFormat | quote }}
  {{- range .settings.extraArgs }}
  - {{ . | quote }}
  {{- end }}
ports:
  - name: pages
    containerPort: {{ int .settings.port }}
    protocol: TCP
  {{- range .ports }}
  - name: {{ .name }}
    containerPort: {{ int .port }}
    protocol: TCP
  {{- end }}
{{- with concat (.env | default list) .settings.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat (.mounts | default list) .settings.extraVolumeMounts }}
volumeMounts:
  {{- toYaml . | nindent 2 }}
{{- end }}
livenessProbe:
  {{- include "numalign.probe" (dict "probe" .settings.livenessProbe "path" .liveness "scheme" .scheme) | nindent 2 }}
{{- with .readiness }}
readinessProbe:
  {{- include "numalign.probe" (dict "probe" $.settings.readinessProbe "path" . "scheme" $.scheme) | nindent 2 }}
{{- end }}
{{- with .settings.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* As numalign.container, and [volumes] [labels] [annotations] [spread] */}}
{{- define "numalign.podTemplate" -}}
{{- $s := .settings -}}
metadata:
  labels:
    {{- $own := include "numalign.ownLabels" . | fromYaml }}
    {{- $labels := list $s.podLabels .root.Values.commonLabels $own (.labels | default dict) }}
    {{- include "numalign.merged" $labels | nindent 4 }}
  {{- with include "numalign.merged" (list $s.podAnnotations (.annotations | default dict)) }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "numalign.account" . | quote }}
  terminationGracePeriodSeconds: {{ int $s.terminationGracePeriodSeconds }}
  {{- with concat .root.Values.global.imagePullSecrets $s.image.pullSecrets | uniq }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . | quote }}
    {{- end }}
  {{- end }}
  {{- if $s.hostNetwork }}
  hostNetwork: true
  {{- end }}
  {{- with $s.dnsPolicy | default (ternary "ClusterFirstWithHostNet" "" $s.hostNetwork) }}
  dnsPolicy: {{ . | quote }}
  {{- end }}
  {{- with $s.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- with $s.podSecurityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $s.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $s.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $s.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .spread }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $s.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - {{- include "numalign.container" . | nindent 6 }}
  {{- with concat (.volumes | default list) $s.extraVolumes }}
  volumes:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Endpoint of a monitor: dict monitor scheme */}}
{{- define "numalign.endpoint" -}}
port: pages
path: /metrics
scheme: {{ .scheme }}
{{- with .monitor.interval }}
interval: {{ . }}
{{- end }}
{{- with .monitor.scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- with .monitor.relabelings }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .monitor.metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
