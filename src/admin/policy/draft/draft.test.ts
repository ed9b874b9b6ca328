import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type AdminSurroundings, runInside } from "../../../../test/support/admin-context.ts";
import { ALLOWED, DENIED, imitateNode, START, WELL } from "../../../../test/support/imitated-flows.ts";
import { seed } from "../../../../test/support/ipam.ts";
import { temporaryDirectory } from "../../../../test/support/temporary-directory.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import type { FlowAnswer } from "../../../flows/flow-answer.ts";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { endpointLabels } from "../../../model/endpoint-labels.ts";
import { ENDPOINT, NETWORK_POLICY } from "../../../model/kinds.ts";
import { networkPolicy } from "../../../model/network-policy.ts";
import { stagedNetworkPolicy } from "../../../model/staged-network-policy.ts";
import { workloadEndpoint } from "../../../model/workload-endpoint.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../../main/command.ts";

const directory = temporaryDirectory("policy-draft");
afterAll(() => directory.remove());
let hosts = 0;

const { backend, ...WITHOUT_BACKEND } = ALLOWED;
const LABELLED: FlowRecord = {
  ...WITHOUT_BACKEND,
  destination: { ...(backend ?? ALLOWED.destination), labels: { app: "db" } },
};
const REFUSED: FlowRecord = { ...DENIED, destination: { ...DENIED.destination, labels: { app: "db" } } };
const ANSWERS: readonly FlowAnswer[] = [...[LABELLED, REFUSED].map((flow) => ({ flow })), WELL];

async function draft(words: string, answers = ANSWERS, more: AdminSurroundings = {}) {
  hosts += 1;
  using node = imitateNode(join(directory.path, String(hosts)), () => answers);
  const asked = { store: openMemory(), now: new Date(START + 3_600_000), env: node.env, ...more };
  const run = await runInside(["policy", "draft", ...words.split(" ").filter((word) => word !== "")], asked);
  return { ...run, asked: node.asked };
}

describe("policy draft", () => {
  test("prints policies that allow the flows of the last day, and says what they do not allow", async () => {
    const { code, stdout, stderr, asked } = await draft("-n shop --enforced");

    expect([code, asked]).toEqual([EXIT_OK, [`/flows?since=${START + 3_600_000 - 86_400_000}&namespace=shop`]]);
    const named = [...stdout.matchAll(/^(?: {2}name|kind): (.*)$/gm)].map(([, name]) => name);
    expect(named).toEqual(["NetworkPolicy", "draft-web", "NetworkPolicy", "draft-db"]);
    expect(stderr).toBe(
      [
        "Read 2 flows; the oldest began 2026-01-02T03:04:01.250Z",
        "Drafted 2 policies with 2 rules: alone they allow 1 of 2 flows",
        "Note: 1 denied flow not allowed; allow them with --include-denied",
        "",
      ].join("\n"),
    );
  });

  test("writes staged policies unless it is told otherwise", async () => {
    const { stdout } = await draft("-n shop");
    const decoded = stdout.split(/^---\n/m).map((text) => stagedNetworkPolicy.decode(Bun.YAML.parse(text)));

    expect(decoded.map(({ ok }) => ok)).toEqual([true, true]);
  });

  test("is about the owners, pods and labels that are named", async () => {
    const names = async (words: string) =>
      [...(await draft(`-n shop ${words}`)).stdout.matchAll(/^ {2}name: (.*)$/gm)].map(([, name]) => name);

    expect(await names("--owner web")).toEqual(["draft-web"]);
    expect(await names("--owner statefulset/db")).toEqual(["draft-db"]);
    expect(await names("--pod web-*")).toEqual(["draft-web"]);
    expect(await names("--label app=db")).toEqual(["draft-db"]);
    expect(await names("--label app=other")).toEqual([]);
  });

  test("fails if there is nothing to draft from, and says why", async () => {
    const nothing = await draft("-n shop", [WELL]);
    expect([nothing.code, nothing.stdout]).toEqual([EXIT_FAILED, ""]);
    expect(nothing.stderr).toContain("Drafted 0 policies");
    expect(nothing.stderr).toContain("no connection was recorded in that time");
    expect((await draft("-n shop --pod other")).stderr).toContain(
      "no flow is of a workload as --namespace and --pod say",
    );
    expect((await draft("")).stderr).toContain("without --namespace only containers");
  });

  test("refuses lengths of networks that do not exist", async () => {
    for (const length of ["33", "24,129", "x", "24,"])
      expect((await draft(`-n shop --aggregate ${length}`)).code).toBe(EXIT_USAGE);
  });
});

describe("policy draft --flow", () => {
  const LABELS = endpointLabels({ app: "db" }, { namespace: "shop", orchestrator: "k8s" });
  const POD = workloadEndpoint.make(
    { name: "node--2-k8s-db--0-eth0", namespace: "shop", labels: LABELS },
    { orchestrator: "k8s", node: "node-2", pod: "db-0", endpoint: "eth0", ipNetworks: ["10.0.1.7/32"] },
  );
  const CLOSED = networkPolicy.make({ name: "db", namespace: "shop" }, { tier: "default", selector: "all()" });
  const EXPLAINED: readonly FlowAnswer[] = [{ explanation: { flow: REFUSED, missing: [] } }, WELL];

  async function ofFlow(words: string, answers = EXPLAINED) {
    const store = openMemory();
    await seed(
      store,
      { kind: "put", key: ENDPOINT.key(POD.metadata), value: workloadEndpoint.write(POD) },
      { kind: "put", key: NETWORK_POLICY.key(CLOSED.metadata), value: networkPolicy.write(CLOSED) },
    );
    return draft(`--flow n2-9 ${words}`, answers, { store });
  }

  test("prints what allows that flow, and what the judge says of it", async () => {
    const { code, stdout, stderr, asked } = await ofFlow("--enforced");

    expect([code, asked]).toEqual([EXIT_OK, ["/explanation?id=n2-9"]]);
    expect(stdout).toContain("kind: NetworkPolicy");
    expect(stdout).toContain("- 203.0.113.77/32");
    expect(stdout).not.toContain("Egress");
    expect(stderr).toStartWith("The judge: with the draft the flow is allowed\n");
    expect((await ofFlow("")).stdout).toContain("kind: StagedNetworkPolicy");
    expect(JSON.parse((await ofFlow("-o json")).stdout)).toMatchObject({ verdict: "allowed", policies: [{}] });
  });

  test("fails for a flow that nobody knows, and with options about many flows", async () => {
    const unknown = await ofFlow("", [WELL]);
    expect([unknown.code, unknown.stdout]).toEqual([EXIT_FAILED, ""]);
    expect(unknown.stderr).toContain("no node knows it");
    for (const words of ["-n shop", "--since 1h", "--include-denied"])
      expect((await ofFlow(words)).code).toBe(EXIT_USAGE);
  });
});
