/** The explanation as text. Pure. */
import type { RequestSource } from "../../../ipam/explain-pools.ts";
import { printable } from "../../terminal/printable.ts";
import { formatTable } from "../../terminal/table.ts";
import type { ExplainedAddress, ExplainedFamily, Explanation } from "./report.ts";

export interface ExplainedWorkload {
  readonly workload: string;
  readonly node: string;
  readonly network: string | undefined;
}

type Line = readonly [title: string, text: string];

export function explanationText({ workload, node, network }: ExplainedWorkload, explanation: Explanation): string {
  const head: readonly Line[] = [
    ["Workload", workload],
    ["Node", node === "" ? "none" : node],
    ...(network === undefined ? [] : [["Network", network] as const]),
    ...(explanation.problem === undefined ? [] : [["Refused", explanation.problem] as const]),
  ];
  const floating = explanation.floating.map(
    ({ address, routes }) => `Floating IP: ${printable(address)}\n${linesOf([["Routes", routes]], "  ")}`,
  );
  return [linesOf(head, ""), ...explanation.families.map((family) => familyText(family, node)), ...floating].join("\n");
}

function familyText(family: ExplainedFamily, node: string): string {
  const { addresses, familyBy, decidedBy, overridden, problem } = family;
  const title = addresses.map(({ address }) => address).join(", ") || "no address";
  const lines: readonly Line[] = [
    ...(familyBy === undefined ? [] : [["Family", familyBy] as const]),
    ["Decided by", sourceText(decidedBy)],
    ...overridden.map((source, index): Line => [index === 0 ? "Overridden" : "", sourceText(source)]),
    ...(problem === undefined ? [] : [["Refused", problem] as const]),
    ...poolLines(family),
    ...addresses.flatMap((address) => addressLines(address, node)),
  ];
  return `IPv${family.family}: ${printable(title)}\n${linesOf(lines, "  ")}`;
}

function sourceText({ place, value }: RequestSource): string {
  return value === "" ? place : `${place}: ${value}`;
}

function poolLines({ pools, addresses }: ExplainedFamily): readonly Line[] {
  if (pools.length === 0) return [];
  const rows = pools.map(({ name, cidr, passedOver, cooldownSeconds = 0 }) => {
    const given = addresses.filter(({ pool }) => pool === name).map(({ address }) => address);
    const verdict = passedOver === undefined ? "may be used" : `passed over: ${passedOver}`;
    const rest = cooldownSeconds === 0 ? "" : `; released addresses rest for ${cooldownSeconds} s at least`;
    return [name, cidr, `${given.length === 0 ? verdict : `has ${given.join(", ")}`}${rest}`];
  });
  const [, ...lines] = formatTable(["", "", ""], rows).trimEnd().split("\n");
  return lines.map((line, index) => [index === 0 ? "Pools" : "", line]);
}

function addressLines(
  { address, interface: ifname, allocation, difference, routes }: ExplainedAddress,
  node: string,
): readonly Line[] {
  const lines: Line[] = [];
  if (ifname !== undefined) lines.push(["Interface", ifname]);
  if (allocation === undefined) lines.push(["Block", `none: IPAM has not assigned ${address} to this workload`]);
  else {
    const { block, blockOf, since, handle } = allocation;
    const borrowed = blockOf === node ? "" : `, borrowed by node ${node}`;
    lines.push(["Block", `${block} of ${blockOf === undefined ? "no node" : `node ${blockOf}`}${borrowed}`]);
    if (since !== undefined) lines.push(["Since", since]);
    if (handle !== undefined) lines.push(["Handle", handle]);
  }
  if (routes !== undefined) lines.push(["Routes", routes]);
  if (difference !== undefined) lines.push(["Difference", `${address} is ${difference}`]);
  return lines;
}

function linesOf(lines: readonly Line[], indent: string): string {
  return lines
    .map(([title, text]) => `${indent}${(title === "" ? "" : `${title}:`).padEnd(12)}${printable(text)}\n`)
    .join("");
}
