/**
 * What `ipam check` says of records that cannot be read, and what it therefore
 * does not say of others. Pure.
 *
 *   unreadable          what it could have said                     so this is not judged
 *   block               who holds its addresses, whose it is        handles, claims and endpoints that lead to it; leaks
 *   handle              which addresses it knows of                 the addresses it holds
 *   claim on a block    that the node has it                        whether the node claims the block
 *   pool                that addresses lie in it                    addresses in no pool
 *   endpoint            which addresses it uses                     leaks
 */
import type { Unreadable } from "../../datastore/read-each.ts";
import { type Address, parseAddress } from "../../ip/address.ts";
import { formatPrefix, type Prefix, prefixContains } from "../../ip/prefix.ts";
import type { Problem } from "../../ipam/invariants.ts";
import { blocksPrefix, type KeyParts, parseKey } from "../../model/keys.ts";
import { redact } from "../../redaction.ts";
import { resourceAt, wayOut } from "../resources/way-out.ts";
import { blockAt } from "./blocks.ts";
import type { EndpointProblem } from "./endpoint-problems.ts";

export interface UnreadableRecord {
  readonly kind: "record-unreadable";
  readonly message: string;
  readonly key: string;
  /** What to do about it. */
  readonly remedy: string;
}

export function describeUnreadable({ key, failure }: Unreadable): UnreadableRecord {
  const remedy = wayOut(key);
  return { kind: "record-unreadable", message: redact(`${failure.message} (${remedy})`), key, remedy };
}

/** Whether the record, could it be read, might show that there is no such problem. */
export function isInDoubt(problem: Problem | EndpointProblem, { key }: Unreadable): boolean {
  if (isBlock(key)) return isInDoubtByBlock(problem, blockAt(key));
  const parts = parseKey(key);
  switch (parts?.kind) {
    case "handle":
      return problem.kind === "allocation-without-handle" && problem.handle === parts.handleId;
    case "affinity":
      return problem.kind === "block-without-affinity" && isClaim(problem, parts);
    case "resource":
      return resourceAt(key)?.kind.mayDisprove?.includes(problem.kind) ?? false;
    default:
      return false;
  }
}

/** `block`: where the key says which it is; otherwise it may be any. */
function isInDoubtByBlock(problem: Problem | EndpointProblem, block: Prefix | undefined): boolean {
  switch (problem.kind) {
    case "handle-without-block":
    case "affinity-without-block":
      return block === undefined || problem.block === formatPrefix(block);
    case "endpoint-without-allocation":
      return block === undefined || contains(block, parseAddress(problem.address ?? ""));
    // The newer sandbox of a pod may have its address there.
    case "allocation-without-endpoint":
      return true;
    default:
      return false;
  }
}

function isClaim({ block, node }: Problem, { node: claimant, cidr }: KeyParts & { kind: "affinity" }): boolean {
  return node === claimant && block === formatPrefix(cidr);
}

function contains(block: Prefix, address: Address | undefined): boolean {
  return address === undefined || prefixContains(block, address);
}

function isBlock(key: string): boolean {
  return key.startsWith(blocksPrefix(4)) || key.startsWith(blocksPrefix(6));
}
