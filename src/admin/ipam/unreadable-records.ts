/**
 * How `ipam check` reports unreadable records, and which problems it therefore
 * cannot be certain of and does not report. Pure.
 *
 *   unreadable    what it could show                        therefore not reported
 *   block         the owners of its addresses, its node     handles, affinities and endpoints that refer to it; leaks
 *   handle        its addresses                             addresses without that handle
 *   affinity      that the block belongs to the node        the block's missing affinity
 *   pool          that addresses are inside it              addresses outside all pools
 *   endpoint      the addresses it uses                     leaks
 */
import type { Unreadable } from "../../datastore/read-each.ts";
import { type Address, parseAddress } from "../../ip/address.ts";
import { formatPrefix, type Prefix, prefixContains } from "../../ip/prefix.ts";
import type { Problem, Severity } from "../../ipam/invariants.ts";
import { blocksPrefix, type KeyParts, parseKey } from "../../model/keys.ts";
import { redact } from "../../redaction.ts";
import { remedyFor, resourceAt } from "../resources/unreadable-remedy.ts";
import { blockAt } from "./blocks.ts";
import type { EndpointProblem } from "./check/leaks-and-duplicates.ts";

export interface UnreadableRecord {
  readonly kind: "record-unreadable";
  readonly severity: Severity;
  readonly message: string;
  readonly key: string;
  /** How the user can repair it. */
  readonly remedy: string;
}

export function describeUnreadable({ key, failure }: Unreadable): UnreadableRecord {
  const remedy = remedyFor(key);
  const message = redact(`${failure.message} (${remedy})`);
  return { kind: "record-unreadable", severity: "corrupt", message, key, remedy };
}

/** Whether the unreadable record might show that the problem does not exist. */
export function isUncertain(problem: Problem | EndpointProblem, { key }: Unreadable): boolean {
  if (isBlock(key)) return isUncertainByBlock(problem, blockAt(key));
  const parts = parseKey(key);
  switch (parts?.kind) {
    case "handle":
      return problem.kind === "allocation-without-handle" && problem.handle === parts.handleId;
    case "affinity":
      return problem.kind === "block-without-affinity" && isAffinityOf(problem, parts);
    case "resource":
      return resourceAt(key)?.kind.uncertainIfUnreadable?.includes(problem.kind) ?? false;
    default:
      return false;
  }
}

/** `block`: `undefined` if the key does not show which it is; it may then be any block. */
function isUncertainByBlock(problem: Problem | EndpointProblem, block: Prefix | undefined): boolean {
  switch (problem.kind) {
    case "handle-without-block":
    case "affinity-without-block":
      return block === undefined || problem.block === formatPrefix(block);
    case "endpoint-without-allocation":
      return block === undefined || contains(block, parseAddress(problem.address ?? ""));
    // The newer sandbox of a pod may have its address in that block.
    case "allocation-without-endpoint":
      return true;
    default:
      return false;
  }
}

function isAffinityOf({ block, node }: Problem, { node: owner, cidr }: KeyParts & { kind: "affinity" }): boolean {
  return node === owner && block === formatPrefix(cidr);
}

function contains(block: Prefix, address: Address | undefined): boolean {
  return address === undefined || prefixContains(block, address);
}

function isBlock(key: string): boolean {
  return key.startsWith(blocksPrefix(4)) || key.startsWith(blocksPrefix(6));
}
