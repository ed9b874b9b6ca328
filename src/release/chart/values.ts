/** The values of the chart, with what they mean. */

import { NETWORK_FIELD } from "../../model/installation/names.ts";
import { formatYaml } from "../../yaml.ts";
import { operatorPodSpec } from "./operator-template.ts";

export function valuesText(): string {
  return `
# Secrets for pulling images, by name: the content of a .dockerconfigjson, as text or as an object. They are created in the namespace
# of the operator; the operator and, unless installation.imagePullSecrets is set, all components use them.
imagePullSecrets: {}

# The Installation that the operator carries out. All fields of its spec can be set here; see docs/installation-resource.md.
installation:
  # Whether the chart renders it. If not, apply one yourself.
  enabled: true
  # ${NETWORK_FIELD}:
  #   ipPools:
  #     - cidr: 10.244.0.0/16
  #   mtu: 1450

# The address of the API server as nodes reach it, for clusters without kube-proxy.
kubernetesServiceEndpoint:
  host: ""
  port: "6443"

# The pods of the operator itself.
operator:
  # The full name of its image. By default that of the release, from the registry of the installation.
  image: ""
  # One of them is active; they need different nodes.
  replicas: 1
  podAnnotations: {}
  resources: {}
  affinity: {}
${indented(formatYaml(defaultsOfPods()))}`;
}

function defaultsOfPods(): object {
  const { nodeSelector, tolerations } = operatorPodSpec();
  return { nodeSelector, tolerations };
}

function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gm, "  ");
}
