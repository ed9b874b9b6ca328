import { below, type Descriptions, type ReleasedKinds } from "./kind.ts";

const PERIOD: Descriptions = {
  reconcilerPeriod: "How often everything is compared, besides following changes (default: 5m; 0s: never)",
};

export const KUBE_CONTROLLERS_CONFIGURATION: ReleasedKinds = {
  KubeControllersConfiguration: {
    columns: [{ name: "Auto Host Endpoints", path: ".spec.controllers.node.hostEndpoint.autoCreate" }],
    statusIsWritten: true,
    descriptions: {
      "": "Which controllers run, and their settings; variables of the environment of the controllers take precedence",
      status: "What runs, written by the controllers: runningConfig, and the environmentVars that it depends on",
      spec: "The settings; what is absent has its default",
      "spec.healthChecks": "Serve /liveness and /readiness (default: Enabled)",
      "spec.prometheusMetricsPort": "Port to serve metrics for Prometheus at (default: 9094; 0: none)",
      "spec.controllers": "The controllers that run: those that have a section here; without it all of them",
      ...below("spec.controllers.policy", "Copies the Kubernetes NetworkPolicies (etcd only)", PERIOD),
      ...below("spec.controllers.namespace", "Makes a profile of each namespace (etcd only)", PERIOD),
      ...below("spec.controllers.serviceAccount", "Makes a profile of each service account (etcd only)", PERIOD),
      ...below(
        "spec.controllers.workloadEndpoint",
        "Copies labels, service account and ports of pods to their endpoints (etcd only)",
        PERIOD,
      ),
      ...below("spec.controllers.node", "Follows nodes: labels, deletion, leaked addresses, host endpoints", {
        ...PERIOD,
        syncLabels: "Copy the labels of the Kubernetes nodes (default: Enabled; etcd only)",
        leakGracePeriod:
          "How long an address of an existing node must be unused until it is released (default: 15m; 0s: never)",
        hostEndpoint: "Host endpoints of nodes",
        "hostEndpoint.autoCreate": "Keep a host endpoint for all interfaces of each node (default: Disabled)",
      }),
    },
  },
};
