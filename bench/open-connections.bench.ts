/**
 * What `openConnections: End` costs a node with 100,000 connections: the judgement of each of them after a change of policy that concerns
 * all, with the load of the benchmark of network policy. `make bench BENCH=open-connections`.
 * Decision: docs/decisions/open-connections.md.
 */
import { parseAddress } from "../src/ip/address.ts";
import { nodeAgentSettings } from "../src/model/node-agent-configuration.ts";
import { TCP } from "../src/model/protocols.ts";
import { type OpenConnection, OpenConnectionJudge } from "../src/policy/judge/open-connections.ts";
import { addressOf, LOAD_NODE, LOAD_PORT, policyLoad } from "../test/support/policy-load.ts";
import { markdown } from "./support/policy-table.ts";
import { writeResults } from "./support/report.ts";

const SIZE = { locals: 1_000, remotes: 10_000, policies: 1_000 };
const CONNECTIONS = Number(process.env["BENCH_CONNECTIONS"] ?? 100_000);
/** Of so many clients to each pod of the node: connections that differ in the port of the client only are judged once. */
const PAIRS_OF_A_POD = [1, 10, 100];

const resources = policyLoad(SIZE);
const here = resources.endpoints.filter(({ spec }) => spec.node === LOAD_NODE);
const node = {
  ...{ name: LOAD_NODE, settings: nodeAgentSettings([], LOAD_NODE), workloads: here, interfaces: [] },
  interfaceTowards: () => undefined,
};

const rows = PAIRS_OF_A_POD.map((pairs) => {
  const all = Array.from({ length: CONNECTIONS }, (_, index) => connection(index, pairs));
  const since = process.cpuUsage();
  const judge = new OpenConnectionJudge(resources, node);
  const denied = all.filter((each) => judge.isDenied(each)).length;
  const { user, system } = process.cpuUsage(since);
  return { pairs: pairs * SIZE.locals, denied, seconds: (user + system) / 1e6 };
});
console.log(
  markdown([
    [`${CONNECTIONS} connections between`, "denied", "processor time", "of one"],
    ...rows.map(({ pairs, denied, seconds }) => [
      ...[
        `${pairs} pairs`,
        String(denied),
        `${seconds.toFixed(2)} s`,
        `${((seconds / CONNECTIONS) * 1e6).toFixed(1)} us`,
      ],
    ]),
  ]),
);
await writeResults("open-connections", { size: SIZE, connections: CONNECTIONS, rows });

function connection(index: number, pairs: number): OpenConnection {
  const pod = index % SIZE.locals;
  const client = (pod + 100 + 7 * (Math.floor(index / SIZE.locals) % pairs)) % SIZE.remotes;
  const [source, destination] = [address(addressOf("other", client)), address(addressOf(LOAD_NODE, pod))];
  const ports = { source: 32_768 + (index % 28_000), destination: LOAD_PORT, answering: LOAD_PORT };
  return { protocol: TCP, source, destination, answering: destination, ports };
}

function address(text: string) {
  const parsed = parseAddress(text);
  if (parsed === undefined) throw new Error(text);
  return parsed;
}
