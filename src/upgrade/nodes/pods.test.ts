import { describe, expect, test } from "bun:test";
import { nodeStates, type RolloutView } from "./pods.ts";

const NOW = new Date("2026-01-01T00:10:00Z");
const LONG_AGO = "2026-01-01T00:00:00Z";
const JUST_NOW = "2026-01-01T00:09:59Z";

const node = (name: string, status = "True", labels = {}) => ({
  metadata: { name, labels: { "kubernetes.io/os": "linux", ...labels } },
  status: { conditions: [{ type: "Ready", status, reason: "NodeStatusUnknown", message: "Kubelet stopped" }] },
});
const container = (name: string, more: object) => ({ name, ready: false, state: {}, ...more });
const running = (startedAt = LONG_AGO) => ({ state: { running: { startedAt } } });
const waiting = (reason: string, message = "") => ({ state: { waiting: { reason, message } } });

function pod(revision: string, status: object, more: object = {}) {
  return {
    metadata: { name: "agent-1", labels: { "controller-revision-hash": revision }, ...more },
    spec: { nodeName: "one", containers: [{ name: "agent", image: "agent:2" }, { name: "flannel" }] },
    status,
  };
}

function view(more: Partial<RolloutView> = {}): RolloutView {
  const daemonSet = {
    spec: {
      updateStrategy: { type: "RollingUpdate" },
      template: {
        spec: { nodeSelector: { "kubernetes.io/os": "linux" }, containers: [{ name: "agent", image: "agent:2" }] },
      },
    },
  };
  return {
    daemonSet,
    pods: [],
    nodes: [node("one")],
    revision: "new",
    container: "agent",
    isPartlyReadyAccepted: false,
    now: NOW,
    ...more,
  };
}

const both = (agent: object, flannel: object) => ({
  phase: "Running",
  containerStatuses: [container("agent", agent), container("flannel", flannel)],
});
const READY = both({ ready: true, ...running() }, { ready: true, ...running() });
/** Only what is not ours is ready. */
const AGENT_UNREADY = both(running(), { ready: true, ...running() });
/** Only our container is ready. */
const AGENT_READY = both({ ready: true, ...running() }, running());
const ALONE = { spec: { nodeName: "one", containers: [{ name: "agent", image: "agent:2" }] } };

describe("nodeStates()", () => {
  test.each<[string, Partial<RolloutView>, string, RegExp]>([
    ["ready", { pods: [pod("new", READY)] }, "ready", /^$/],
    ["without a pod", {}, "absent", /no pod/],
    [
      "not ready itself",
      { nodes: [node("one", "Unknown")] },
      "absent",
      /Node is not ready \(NodeStatusUnknown: Kubelet stopped\)/,
    ],
    ["whose turn it is not", { pods: [pod("old", READY)] }, "old", /^$/],
    [
      "whose old pod does not end",
      { pods: [pod("old", READY, { deletionTimestamp: LONG_AGO })] },
      "old",
      /does not end/,
    ],
    [
      "that cannot pull the image",
      { pods: [pod("new", both(waiting("ImagePullBackOff", "no such image"), running()))] },
      "starting",
      /pod agent-1: container agent: ImagePullBackOff \(no such image\)/,
    ],
    [
      "with a crash loop",
      {
        pods: [
          pod(
            "new",
            both(
              {
                ...waiting("CrashLoopBackOff"),
                lastState: { terminated: { exitCode: 7, reason: "Error", message: "no etcd" } },
              },
              running(),
            ),
          ),
        ],
        isPartlyReadyAccepted: true,
      },
      "starting",
      /CrashLoopBackOff; it ended with 7 \(Error: no etcd\)/,
    ],
    [
      "whose installation fails",
      {
        pods: [
          pod("new", {
            phase: "Pending",
            initContainerStatuses: [container("install", waiting("CrashLoopBackOff", "back-off"))],
          }),
        ],
      },
      "starting",
      /container install: CrashLoopBackOff/,
    ],
    [
      "without room",
      {
        pods: [
          pod("new", {
            phase: "Pending",
            conditions: [
              { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "Insufficient cpu" },
            ],
          }),
        ],
      },
      "starting",
      /not scheduled \(Unschedulable: Insufficient cpu\)/,
    ],
    ["1/2 ready", { pods: [pod("new", AGENT_READY)] }, "starting", /not ready: flannel/],
    ["1/2 ready on etcd", { pods: [pod("new", AGENT_READY)], isPartlyReadyAccepted: true }, "accepted", /^$/],
    [
      "1/2 ready on etcd since a moment",
      { pods: [pod("new", both({ ready: true, ...running(JUST_NOW) }, running()))], isPartlyReadyAccepted: true },
      "starting",
      /not ready: flannel/,
    ],
    [
      "1/2 ready on etcd without the agent",
      { pods: [pod("new", AGENT_UNREADY)], isPartlyReadyAccepted: true },
      "starting",
      /not ready: agent/,
    ],
    [
      "0/1 ready on etcd",
      {
        pods: [{ ...pod("new", { phase: "Running", containerStatuses: [container("agent", running())] }), ...ALONE }],
        isPartlyReadyAccepted: true,
      },
      "starting",
      /not ready: agent/,
    ],
    [
      "that ends",
      { pods: [pod("new", READY, { deletionTimestamp: LONG_AGO })], isPartlyReadyAccepted: true },
      "starting",
      /does not run/,
    ],
  ])("a node %s", (_, more, state, why) => {
    expect(nodeStates(view(more))).toEqual([
      expect.objectContaining({ node: "one", state, why: expect.stringMatching(why) }),
    ]);
  });

  test("with OnDelete somebody has to delete the pod", () => {
    const { daemonSet } = view();
    const onDelete = { spec: { ...(daemonSet["spec"] as object), updateStrategy: { type: "OnDelete" } } };
    const [state] = nodeStates(view({ daemonSet: onDelete, pods: [pod("old", READY)] }));

    expect(state?.why).toContain("OnDelete: delete the pod");
  });

  test("nodes that the DaemonSet does not select have no pod", () => {
    expect(nodeStates(view({ nodes: [node("one", "True", { "kubernetes.io/os": "windows" })] }))).toEqual([]);
  });

  test("without revisions, images tell which pods are new", () => {
    const { revision: _, ...unknown } = view({ pods: [pod("any", READY)] });

    expect(nodeStates(unknown).map(({ state }) => state)).toEqual(["ready"]);
  });
});
