{{/* The agent's settings on the nodes of a group, with `layout`, the places of its kubelet: dict root group. As JSON. */}}
{{- define "numalign.agentSettings" -}}
{{- $agent := deepCopy .root.Values.agent -}}
{{- range $key, $value := omit .group "name" "nodeSelector" -}}
{{- $_ := set $agent $key $value -}}
{{- end -}}
{{- range $key, $value := .group.nodeSelector | default dict -}}
{{- $_ := set $agent.nodeSelector $key $value -}}
{{- end -}}
{{- $layout := get (.root.Files.Get "files/presets.json" | fromJson) $agent.preset -}}
{{- range list "kubeletDir" "kubeletConfig" -}}
{{- if get $agent . -}}
{{- $_ := set $layout . (get $agent .) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $layout "hostPaths" (concat $layout.hostPaths $agent.hostPaths) -}}
{{- $_ := set $layout "configz" (or $layout.configz $agent.configz.enabled | default false) -}}
{{- with $agent.configz.certificateAuthority -}}
{{- $_ := set $layout "certificateAuthority" . -}}
{{- end -}}
{{- $_ := set $agent "layout" $layout -}}
{{- if and $agent.exclude (eq $agent.mode "own") -}}
{{- fail "agent.exclude: is for the modes rte and nfd; a report in our own form is always complete" -}}
{{- end -}}
{{- toJson $agent -}}
{{- end -}}

{{- define "numalign.agentArgs" -}}
{{- $layout := .layout -}}
{{- $args := list "--host-root=/host" (printf "--kubelet-dir=%s" $layout.kubeletDir) -}}
{{- with $layout.kubeletConfig -}}
{{- $args = append $args (printf "--kubelet-config=%s" .) -}}
{{- end -}}
{{- with .podResourcesSocket -}}
{{- $args = append $args (printf "--podresources-socket=/host%s" .) -}}
{{- end -}}
{{- if $layout.configz -}}
{{- $args = append $args "--configz" -}}
{{- with $layout.certificateAuthority -}}
{{- $args = append $args (printf "--kubelet-certificate-authority=%s" .) -}}
{{- end -}}
{{- end -}}
{{- $args = append $args (printf "--mode=%s" .mode) -}}
{{- $args = append $args (printf "--api-version=%s" .apiVersion) -}}
{{- $args = append $args (printf "--period=%d" (int .period)) -}}
{{- if .exclude -}}
{{- $args = append $args "--exclude=/etc/numalign/exclude.json" -}}
{{- end -}}
{{- if .removeStartupTaint -}}
{{- $args = append $args "--remove-startup-taint" -}}
{{- end -}}
{{- if .directMode -}}
{{- $args = concat $args (list "--direct-mode" (printf "--nri-socket=%s" .nriSocket)) -}}
{{- end -}}
{{- toJson $args -}}
{{- end -}}

{{/* Folders rather than files and sockets, which the kubelet replaces: pairs of a name and a path, with a type. */}}
{{- define "numalign.agentHostFiles" -}}
{{- $dir := .layout.kubeletDir -}}
{{- $files := list (dict "name" "sys" "path" "/sys") (dict "name" "proc" "path" "/proc") (dict "name" "kubelet" "path" $dir) -}}
{{- if not (hasPrefix (printf "%s/" $dir) "/var/lib/kubelet/device-plugins") -}}
{{- $files = append $files (dict "name" "device-plugins" "path" "/var/lib/kubelet/device-plugins") -}}
{{- end -}}
{{- if .podResourcesSocket -}}
{{- $folder := dir .podResourcesSocket -}}
{{- if not (hasPrefix (printf "%s/" $dir) (printf "%s/" $folder)) -}}
{{- $files = append $files (dict "name" "pod-resources" "path" $folder) -}}
{{- end -}}
{{- end -}}
{{- if .directMode -}}
{{- $files = append $files (dict "name" "nri" "path" (dir .nriSocket) "type" "DirectoryOrCreate") -}}
{{- end -}}
{{- range $index, $each := .layout.hostPaths -}}
{{- $files = append $files (dict "name" (printf "host-%d" $index) "path" $each.path "type" ($each.type | default "Directory")) -}}
{{- end -}}
{{- toJson $files -}}
{{- end -}}
