/** Runs a desired table on a packet at all hooks of its way, one after another. For tests. */
import type { Hook } from "../../../src/linux/nftables/ruleset.ts";
import type { Passage } from "../../../src/policy/judge/host-judge.ts";
import type { DesiredTable } from "../../../src/policy/table/desired-table.ts";
import { type Decider, type Interpreted, interpret } from "./interpret.ts";
import type { PacketBytes } from "./packet-bytes.ts";
import { unmarked } from "./packet-marks.ts";

const HOOKS: Readonly<Record<Passage["kind"], readonly Hook[]>> = {
  "to host": ["prerouting", "input"],
  "from host": ["output"],
  forwarded: ["prerouting", "forward"],
};

/** `deciders`: of all hooks. */
export function interpretPassage(
  table: DesiredTable,
  passage: Passage,
  packet: PacketBytes,
  marks = unmarked(),
): Interpreted {
  const deciders: Decider[] = [];
  const iifname = "from" in passage ? passage.from : "";
  const oifname = "to" in passage ? passage.to : "";
  let last: Interpreted = { verdict: "accept" };
  for (const hook of HOOKS[passage.kind]) {
    // The route of a packet is known only after the first hook.
    last = interpret(table, { hook, iifname, oifname: hook === "prerouting" ? "" : oifname, packet }, marks);
    deciders.push(...(last.deciders ?? []));
    if (last.verdict === "drop") break;
  }
  return { ...last, deciders };
}
