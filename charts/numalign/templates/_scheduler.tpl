{{/* The KubeSchedulerConfiguration, as src/numalign/deploy/schedulerfile.py makes it. */}}
{{- define "numalign.schedulerConfig" -}}
{{- $s := .Values.scheduler -}}
{{- $only := eq $s.mode "only" -}}
{{- $own := include "numalign.component" (dict "root" . "component" "scheduler") -}}
{{- $wanted := $s.leaderElection -}}
{{- $name := $wanted.resourceName | default (ternary "kube-scheduler" $own $only) -}}
{{- $namespace := $wanted.resourceNamespace | default (ternary "kube-system" (include "numalign.namespace" .) $only) -}}
{{- $asked := eq $s.mode "extender" -}}
{{- $election := dict "leaderElect" (not $asked) "resourceName" $name "resourceNamespace" $namespace -}}
{{- range list "leaseDuration" "renewDeadline" "retryPeriod" -}}
{{- $_ := set $election . (get $wanted .) -}}
{{- end -}}
{{- range $key, $value := $s.config.leaderElection | default dict -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set $election $key $value -}}
{{- end -}}
{{- end -}}
{{- $zones := dict -}}
{{- with $s.scoringStrategy.type -}}
{{- $strategy := dict "type" . -}}
{{- $resources := list -}}
{{- range $s.scoringStrategy.resources -}}
{{- $resources = append $resources (dict "name" .name "weight" (.weight | default 1)) -}}
{{- end -}}
{{- if $resources -}}
{{- $_ := set $strategy "resources" $resources -}}
{{- end -}}
{{- $_ := set $zones "scoringStrategy" $strategy -}}
{{- end -}}
{{- with $s.cache.resyncPeriodSeconds -}}
{{- $_ := set $zones "cacheResyncPeriodSeconds" . -}}
{{- end -}}
{{- $cache := dict -}}
{{- range list "resyncMethod" "foreignPodsDetect" "informerMode" -}}
{{- if get $s.cache . -}}
{{- $_ := set $cache . (get $s.cache .) -}}
{{- end -}}
{{- end -}}
{{- if $cache -}}
{{- $_ := set $zones "cache" $cache -}}
{{- end -}}
{{- with $s.preemptionMode -}}
{{- $_ := set $zones "preemptionMode" . -}}
{{- end -}}
{{- $ours := dict "flavour" $s.flavour "nodesWithoutReport" $s.nodesWithoutReport "deleteRejectedPods" $s.deleteRejectedPods -}}
{{- with $s.firstReportGracePeriod -}}
{{- $_ := set $ours "firstReportGracePeriod" . -}}
{{- end -}}
{{- $plugins := list (dict "name" "Numalign" "args" $ours) -}}
{{- if $zones -}}
{{- $plugins = prepend $plugins (dict "name" "NodeResourceTopologyMatch" "args" $zones) -}}
{{- end -}}
{{- $profiles := list -}}
{{- $names := ternary (list "default-scheduler" $s.name) (list $s.name) $only -}}
{{- range ternary (list "default-scheduler") $names $asked | uniq -}}
{{- $profiles = append $profiles (dict "schedulerName" . "pluginConfig" $plugins) -}}
{{- end -}}
{{- $config := dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" "profiles" $profiles -}}
{{- range $key, $value := $s.config -}}
{{- $_ := set $config $key $value -}}
{{- end -}}
{{- $_ := set $config "leaderElection" $election -}}
{{- toPrettyJson $config -}}
{{- end -}}

{{/* The Secret with the certificate of the pages; empty: the scheduler signs its own. */}}
{{- define "numalign.schedulerSecret" -}}
{{- if .Values.scheduler.tls.certManager.enabled -}}
{{- include "numalign.component" (dict "root" . "component" "scheduler") -}}-tls
{{- else -}}
{{- .Values.scheduler.tls.secretName -}}
{{- end -}}
{{- end -}}

{{/* What pods write into spec.schedulerName: scheduler.config may have profiles of its own. */}}
{{- define "numalign.servedNames" -}}
{{- $names := list -}}
{{- range (include "numalign.schedulerConfig" . | fromJson).profiles -}}
{{- $names = append $names .schedulerName -}}
{{- end -}}
{{- $names | default (list "numalign") | join " or " -}}
{{- end -}}
