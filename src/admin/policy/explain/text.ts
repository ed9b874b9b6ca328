/** The explanation as text. Pure. */

import { formatAddress } from "../../../ip/address.ts";
import { ALL_INTERFACES } from "../../../model/host-endpoint.ts";
import type { Explanation, Verdict } from "../../../policy/judge/explain.ts";
import type { AppliedPolicy, ExplainedHostEndpoint, ExplainedSide } from "../../../policy/judge/explain-side.ts";
import type { Packet, PacketRequest } from "../../../policy/judge/packet.ts";
import type { Call, Terminal } from "../../main/context.ts";
import { hanging, stdoutPage, wrappedWhole } from "../../terminal/page.ts";
import { paint } from "../../terminal/paint.ts";
import { printable } from "../../terminal/printable.ts";
import { formatRows } from "../../terminal/table.ts";
import { type ChangedResource, changeWords } from "../what-if/planned-change.ts";
import { withPort } from "./follow-nat.ts";
import { packetWords, requestWords } from "./packet.ts";
import { type PeerPlace, titleOf } from "./peer.ts";

export interface ExplainedFamily extends Explanation {
  readonly packet: Packet;
  readonly request?: PacketRequest | undefined;
  readonly from: PeerPlace;
  /** As the packet is sent. */
  readonly to: PeerPlace;
  /** Where it arrives, if its destination is rewritten on the way. */
  readonly target?: ExplainedTarget;
  /** The pool whose natOutgoing replaces the source address. */
  readonly masqueradedBy?: string;
  /** What the verdict depends on besides the policies. */
  readonly note?: string;
}

export interface ExplainedTarget {
  readonly place: PeerPlace;
  readonly port: number | undefined;
  /** What rewrites it, in words. */
  readonly by: string;
  /** The node that does. Absent: that of the source. */
  readonly node?: string;
  readonly hidesSource?: true;
}

/** What the explanations below assume. */
export function asIfText(changes: readonly ChangedResource[], context: Call & Terminal): string {
  return linesOf([["As if", changeWords(changes)]], stdoutPage(context).width);
}

type Line = readonly [title: string, text: string];

export function explanationText(explained: ExplainedFamily, context: Call & Terminal): string {
  const { packet, request, from, to, target, verdict, note, sides, masqueradedBy } = explained;
  const { bold, green, red, yellow } = paint(context);
  const { width } = stdoutPage(context);
  const colours = { allow: green, deny: red, depends: yellow };
  const outcome = wrappedWhole(VERDICTS[verdict], width - TITLE_WIDTH)
    .map((line) => bold(colours[verdict](line)))
    .join(`\n${" ".repeat(TITLE_WIDTH)}`);
  const head = [
    linesOf(
      [
        ["Packet", packetWords(packet)],
        ...(request === undefined ? [] : [["Request", requestWords(request)] as const]),
        ["From", placeText(from)],
        ["To", placeText(to)],
        ...(target === undefined ? [] : [["Leads to", targetText(packet, target)] as const]),
        ...(masqueradedBy === undefined ? [] : [["Leaves as", leavingText(from, masqueradedBy)] as const]),
      ],
      width,
    ),
    `${"Verdict:".padEnd(TITLE_WIDTH)}${outcome}\n`,
    linesOf(note === undefined ? [] : [["Note", note]], width),
  ].join("");
  if (sides.length === 0) {
    const nothing = "Neither end is a workload or on a node with a host endpoint: no policy applies.";
    return `${head}\n${wrappedWhole(nothing, width).join("\n")}\n`;
  }
  return [head, ...sides.map((side) => sideText(side, { from, to: target?.place ?? to }, width))].join("\n");
}

const VERDICTS: Readonly<Record<Verdict, string>> = {
  allow: "allowed",
  deny: "denied",
  depends: "depends on the interface (to choose one, give hostendpoint/NAME instead of an address of its node)",
};

function placeText({ address, endpoint, node, hostEndpoint, network }: PeerPlace): string {
  const text = formatAddress(address);
  if (hostEndpoint !== undefined) return `host endpoint ${hostEndpoint.metadata.name} (${text}, node ${node ?? ""})`;
  if (endpoint !== undefined) {
    const { interfaceName, node: own } = endpoint.spec;
    const place = [
      ...(network === undefined ? [] : [`network ${network}`]),
      ...(own === undefined ? [] : [`node ${own}`]),
      ...(interfaceName === undefined ? [] : [`interface ${interfaceName}`]),
    ];
    return `${titleOf(endpoint)} (${[text, ...place].join(", ")})`;
  }
  return node === undefined ? `${text} (not a workload)` : `${text} (node ${node})`;
}

/** `192.0.2.2:8080 is web:80 (10.0.0.5, published port of this host)`. */
function targetText({ destination, destinationPort }: Packet, { place, port, by }: ExplainedTarget): string {
  const { address, endpoint } = place;
  const sent = withPort(destination, destinationPort);
  if (endpoint === undefined) return `${sent} is ${withPort(address, port)} (${by})`;
  const name = `${titleOf(endpoint)}${port === undefined ? "" : `:${port}`}`;
  return `${sent} is ${name} (${formatAddress(address)}, ${by})`;
}

function leavingText({ endpoint }: PeerPlace, pool: string): string {
  return `the address of node ${endpoint?.spec.node ?? ""} (natOutgoing of pool ${pool})`;
}

function sideText(side: ExplainedSide, ends: Pick<ExplainedFamily, "from" | "to">, width: number): string {
  const { direction, verdict, reason, hint, policies, hostEndpoint, isRequest } = side;
  const end = direction === "egress" ? ends.from : ends.to;
  const name =
    hostEndpoint !== undefined
      ? hostEndpointText(hostEndpoint)
      : end.endpoint === undefined
        ? formatAddress(end.address)
        : titleOf(end.endpoint);
  const way = isRequest === true ? "Request, by the sidecar of" : `${direction === "egress" ? "Egress" : "Ingress"} of`;
  const title = `${way} ${name}: ${VERDICTS[verdict]}`;
  const lines: readonly Line[] = [
    ["Because", reason],
    ...(hint === undefined ? [] : [["Hint", hint] as const]),
    ...policyLines(policies, width - INDENT.length - TITLE_WIDTH),
  ];
  return `${wrappedWhole(printable(title), width).join("\n")}\n${linesOf(lines, width, INDENT)}`;
}

function hostEndpointText({ name, node, interfaceName, isUncertain }: ExplainedHostEndpoint): string {
  const place =
    interfaceName === undefined
      ? "the interface with an expected address"
      : interfaceName === ALL_INTERFACES
        ? "all interfaces"
        : `interface ${interfaceName}`;
  const condition = isUncertain === true ? ", if it passes there" : "";
  return `host endpoint ${name} (node ${node}, ${place}${condition})`;
}

function policyLines(policies: readonly AppliedPolicy[], width: number): readonly Line[] {
  if (policies.length === 0) return [];
  const rows = policies.map(({ kind, name, namespace, tier, order, stage, outcome }, index) => [
    `${index + 1}.`,
    `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`,
    [`tier ${tier}`, ...(order === undefined ? [] : [`order ${order}`]), ...(stage === undefined ? [] : [stage])].join(
      ", ",
    ),
    outcome,
  ]);
  return formatRows(rows, width).map((line, index) => [index === 0 ? "Policies" : "", line]);
}

const TITLE_WIDTH = 12;
const INDENT = "  ";

function linesOf(lines: readonly Line[], width: number, indent = ""): string {
  return lines
    .flatMap(([title, text]) => {
      const head = `${indent}${(title === "" ? "" : `${title}:`).padEnd(TITLE_WIDTH)}`;
      return hanging(head, printable(text), width);
    })
    .map((line) => `${line}\n`)
    .join("");
}
