/** The objects of the operator as a template: those of operator.yaml, with values in place of what users may change. */

import { identity } from "../../identity.ts";
import { isObject } from "../../model/shape.ts";
import { formatYaml } from "../../yaml.ts";
import type { KubeObject } from "../kube-object.ts";
import { operatorObjects } from "../manifests/operator.ts";

type Members = Readonly<Record<string, unknown>>;

/** Helm creates the namespace, or the user does. */
export function operatorTemplate(): string {
  const objects = chartObjects().map((object) => (object.kind === "Deployment" ? withPlaces(object) : object));
  const text = objects.map(formatYaml).join("---\n");
  return `{{- include "${identity.operator}.requireNamespace" . }}\n${withValues(text)}`;
}

function chartObjects(): readonly KubeObject[] {
  return operatorObjects({ image: place("image") }).filter(({ kind }) => kind !== "Namespace");
}

/** The pods of the operator as they are without values: what the values are by default. */
export function operatorPodSpec(): Members {
  const deployment = chartObjects().find(({ kind }) => kind === "Deployment");
  return membersAt(deployment ?? {}, ["spec", "template", "spec"]);
}

function withPlaces(deployment: KubeObject): KubeObject {
  const spec = membersAt(deployment, ["spec"]);
  const template = membersAt(spec, ["template"]);
  const pod = membersAt(template, ["spec"]);
  const [container = {}] = Array.isArray(pod["containers"]) ? pod["containers"].filter(isObject) : [];
  return {
    ...deployment,
    spec: {
      ...spec,
      replicas: place("replicas"),
      template: {
        metadata: { ...membersAt(template, ["metadata"]), annotations: place("annotations") },
        spec: {
          ...pod,
          imagePullSecrets: place("pullSecrets"),
          nodeSelector: place("nodeSelector"),
          tolerations: place("tolerations"),
          affinity: place("affinity"),
          containers: [{ ...container, resources: place("resources") }],
        },
      },
    },
  };
}

function membersAt(object: object, path: readonly string[]): Members {
  return path.reduce<Members>(
    (inner, name) => {
      const member = inner[name];
      return isObject(member) ? member : {};
    },
    { ...object },
  );
}

function place(name: string): string {
  return `@${name}@`;
}

const VALUES: Readonly<Record<string, string>> = {
  nodeSelector: ".Values.operator.nodeSelector",
  tolerations: ".Values.operator.tolerations",
  affinity: ".Values.operator.affinity",
  resources: ".Values.operator.resources",
};

/** Replaces whole lines: `nodeSelector: "@nodeSelector@"`. */
function withValues(text: string): string {
  return text.replaceAll(/^( *(?:- )?)(\w+): "?@(\w+)@"?$/gm, (_, indent: string, field: string, name: string) => {
    const inner = indent.length + 2;
    switch (name) {
      case "image":
        return `${indent}${field}: {{ include "${identity.operator}.image" . | quote }}`;
      case "replicas":
        return `${indent}${field}: {{ .Values.operator.replicas }}`;
      case "annotations":
        return `${indent}${field}:
${" ".repeat(inner)}# The address of the API server is read when the operator starts.
${" ".repeat(inner)}checksum/api-endpoint: {{ toYaml .Values.kubernetesServiceEndpoint | sha256sum }}
${" ".repeat(inner)}{{- with .Values.operator.podAnnotations }}
${" ".repeat(inner)}{{- toYaml . | nindent ${inner} }}
${" ".repeat(inner)}{{- end }}`;
      case "pullSecrets":
        return `${indent}{{- with .Values.imagePullSecrets }}
${indent}${field}:
${indent}{{- range $name, $_ := . }}
${indent}  - name: {{ $name | quote }}
${indent}{{- end }}
${indent}{{- end }}`;
      default:
        return `${indent}{{- with ${VALUES[name]} }}
${indent}${field}:
${indent}  {{- toYaml . | nindent ${inner} }}
${indent}{{- end }}`;
    }
  });
}
