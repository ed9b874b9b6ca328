/**
 * Configurations of a mesh's injector, as small as possible: the places that the sidecar is inserted at, between the
 * expressions, conditions, comments and blank lines that real ones have there. `test/parts/injection` renders them.
 */
import type { MeshMinor } from "../../src/alp/mesh/mesh-minor.ts";
import { rowOf } from "../../src/alp/mesh/mesh-minor.ts";

const PORTS =
  "{{ excludeInboundPort (annotation .ObjectMeta `status.sidecar.istio.io/port` .Values.global.proxy.statusPort) " +
  "(annotation .ObjectMeta `traffic.sidecar.istio.io/excludeInboundPorts` .Values.global.proxy.excludeInboundPorts) }}";

/** The part of a pod that the mesh adds, indented for its place. */
const SPEC = `initContainers:
- name: istio-init
  image: "{{ .Values.global.hub }}/init:{{ .Values.global.tag }}"
  args:
  - "-d"
  - "15090,${PORTS}"
{{- if .Values.global.debug }}
- name: more-init
  image: debug
{{ end }}
containers:
- name: istio-proxy
  image: "{{ .Values.global.hub }}/proxy:{{ .Values.global.tag }}"
  {{- if .Values.global.debug }}
  args: [--debug]
  {{- end }}
  resources: {}
  volumeMounts:
  {{- if eq .Values.global.certificates "mounted" }}
  - mountPath: /certificates
    name: certificates
  {{- end }}
  # An edit of the users.
  - mountPath: /data
    name: data

volumes:
{{- if eq .Values.global.certificates "mounted" }}
- name: certificates
  emptyDir: {}
{{- end }}
- name: data
  emptyDir: {}
`;

export function injectorConfig(minor: MeshMinor): string {
  return rowOf(minor).templates === "one" ? oneTemplate() : severalTemplates();
}

function oneTemplate(): string {
  const redirect = `podRedirectAnnot:\n  traffic.sidecar.istio.io/excludeInboundPorts: "${PORTS}"\n`;
  return `policy: enabled\nneverInjectSelector:\n  []\ntemplate: |\n${indented(`${SPEC}${redirect}`, 2)}`;
}

function severalTemplates(): string {
  const sidecar = `metadata:\n  labels:\n    in-mesh: {{ .Values.global.tag | quote }}\nspec:\n${indented(SPEC, 2)}`;
  return [
    "# Which templates pods have that name none.",
    "defaultTemplates: [sidecar]",
    "policy: enabled",
    "neverInjectSelector:",
    "  []",
    'template: "{{ Old_Meshes_Must_Not_Use_This }}"',
    "templates:",
    "  sidecar: |",
    indented(sidecar, 4).trimEnd(),
    "  gateway: |",
    "    spec:",
    "      containers:",
    "      - name: istio-proxy",
    "        image: auto",
  ].join("\n");
}

function indented(text: string, by: number): string {
  return text.replace(/^(?=.)/gm, " ".repeat(by));
}
