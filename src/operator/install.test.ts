import { describe, expect, test } from "bun:test";
import { followedSnapshot, liveObject } from "../../test/support/followed-snapshot.ts";
import { identity } from "../identity.ts";
import { manifestProblem } from "./install.ts";

const NAMESPACES = { operator: "of-operator", components: "system" };
const labels = { "app.kubernetes.io/part-of": identity.product };
const agent = (namespace: string, members: object = { labels }) =>
  liveObject("DaemonSet", identity.nodeAgent, { metadata: { namespace, ...members } });

describe("manifestProblem()", () => {
  test("names the installation by a manifest, and how to remove it", () => {
    const problem = manifestProblem(followedSnapshot({ agents: [agent("kube-system")] }), NAMESPACES);

    expect(problem).toContain(`DaemonSet "kube-system/${identity.nodeAgent}" exists`);
    expect(problem).toContain(`kubectl --namespace kube-system delete daemonset/${identity.nodeAgent}`);
  });

  test("finds none in the operator's own DaemonSet, in one of others, or if it is installed already", () => {
    const own = agent("system");
    const cases = [
      { agents: [own] },
      { agents: [agent("other", {})] },
      { agents: [own, agent("kube-system")], daemonsets: [own] },
    ];

    expect(cases.map((objects) => manifestProblem(followedSnapshot(objects), NAMESPACES))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});
