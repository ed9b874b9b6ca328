import { describe, expect, test } from "bun:test";
import { withoutServerFields } from "./server-defaults.ts";

const MANIFEST = {
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: { name: "node", namespace: "kube-system" },
  spec: {
    selector: { matchLabels: { app: "node" } },
    template: {
      metadata: { labels: { app: "node" } },
      spec: {
        serviceAccountName: "node",
        containers: [
          {
            name: "node",
            image: "node:v1",
            env: [{ name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }],
            livenessProbe: { httpGet: { path: "/live", port: 1 }, periodSeconds: 10 },
          },
        ],
        volumes: [{ name: "run", hostPath: { path: "/run" } }],
      },
    },
  },
};

/** As the API server returns it. */
const LIVE = {
  ...MANIFEST,
  metadata: {
    ...MANIFEST.metadata,
    uid: "1",
    resourceVersion: "2",
    generation: 1,
    creationTimestamp: "2026-01-01T00:00:00Z",
    annotations: { "deprecated.daemonset.template.generation": "1" },
    managedFields: [],
  },
  spec: {
    ...MANIFEST.spec,
    revisionHistoryLimit: 10,
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
    template: {
      metadata: { creationTimestamp: null, labels: { app: "node" } },
      spec: {
        serviceAccountName: "node",
        serviceAccount: "node",
        dnsPolicy: "ClusterFirst",
        restartPolicy: "Always",
        schedulerName: "default-scheduler",
        securityContext: {},
        terminationGracePeriodSeconds: 30,
        containers: [
          {
            name: "node",
            image: "node:v1",
            imagePullPolicy: "IfNotPresent",
            terminationMessagePath: "/dev/termination-log",
            terminationMessagePolicy: "File",
            resources: {},
            env: [{ name: "NODE", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "spec.nodeName" } } }],
            livenessProbe: {
              httpGet: { path: "/live", port: 1, scheme: "HTTP" },
              periodSeconds: 10,
              timeoutSeconds: 1,
              successThreshold: 1,
              failureThreshold: 3,
            },
          },
        ],
        volumes: [{ name: "run", hostPath: { path: "/run", type: "" } }],
      },
    },
  },
  status: { desiredNumberScheduled: 1 },
};

describe("withoutServerFields()", () => {
  test("leaves what the manifest has", () => {
    expect(withoutServerFields(LIVE, MANIFEST)).toEqual(MANIFEST);
  });

  test("keeps what a user has set", () => {
    const template = { ...LIVE.spec.template, spec: { ...LIVE.spec.template.spec, terminationGracePeriodSeconds: 5 } };
    const edited = { ...LIVE, spec: { ...LIVE.spec, template, updateStrategy: { type: "OnDelete" } } };

    expect(withoutServerFields(edited, MANIFEST)).toEqual({
      ...MANIFEST,
      spec: {
        ...MANIFEST.spec,
        updateStrategy: { type: "OnDelete" },
        template: {
          ...MANIFEST.spec.template,
          spec: { ...MANIFEST.spec.template.spec, terminationGracePeriodSeconds: 5 },
        },
      },
    });
  });

  test("keeps a default that the manifest has too", () => {
    const manifest = { ...MANIFEST, spec: { ...MANIFEST.spec, revisionHistoryLimit: 10 } };

    expect(withoutServerFields(LIVE, manifest)).toEqual(manifest);
  });
});
