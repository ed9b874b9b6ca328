/**
 * Our records of the orchestrator's nodes (etcd): they have the labels and the external addresses of the node, and go when it is
 * gone.
 *
 * An annotation holds the labels that were copied last: one that disappears there disappears here, and labels that users
 * set here stay. A record that does not name a node of the orchestrator belongs to another host, and is left alone. What a
 * deleted node held, addresses and claims, is given back by the leak collection.
 */
import { identity } from "../identity.ts";
import { sharesOfGone } from "../ipam/leaks/cluster-records.ts";
import { resourceKey } from "../model/keys.ts";
import { NODE } from "../model/kinds.ts";
import type { Node } from "../model/node.ts";
import { isExternal } from "../model/node-members.ts";
import { orchestratorReference } from "../model/node-reference.ts";
import { isObject } from "../model/shape.ts";
import { parseJson } from "../parse-json.ts";
import type { Controller, Proposal, ProposedRemovals } from "./controller.ts";
import type { Facts, FactsUpdate } from "./facts.ts";
import { usageOfNodes } from "./ipam-usage.ts";
import { recordsIn } from "./leaks/records.ts";
import { recordsWithoutNode } from "./node-names.ts";
import { NodeReferences } from "./node-references.ts";

const SYNCED_ANNOTATION = `${identity.labelPrefix}kube-labels`;

type Labels = Readonly<Record<string, string>>;

/** Its keys are those of our records. */
export class NodeRecordController implements Controller {
  readonly name = "node";
  readonly follows = {
    orchestrator: ["nodes"],
    stored: ["nodes", "blocks4", "blocks6", "claims", "endpoints"],
  } as const;
  private readonly references = new NodeReferences();

  constructor(private readonly syncsLabels: boolean) {}

  keysOf(update: FactsUpdate): Iterable<string> {
    return this.references.recordsIn(update);
  }

  allKeys({ stored }: Facts): Iterable<string> {
    return stored.nodes.keys();
  }

  /**
   * What the leak collection finds unused once a record is gone belongs to its deletion: of several nodes, each alone may
   * have little. Of a single node the collection itself holds everything: its record goes at once, since another machine
   * that takes its name could not register otherwise.
   */
  removals(facts: Facts): ProposedRemovals {
    const found = recordsWithoutNode(facts);
    const removed = { keys: [...found.values()], total: [...facts.stored.nodes.keys()].length };
    if (found.size <= 1) return removed;
    const records = recordsIn(facts);
    const isGone = (node: string) => found.has(node);
    const usage = usageOfNodes(records.blocks);
    const sum = (nodes: readonly { readonly inUse: number }[]) => nodes.reduce((total, { inUse }) => total + inUse, 0);
    const count = sum(usage.filter(({ node }) => isGone(node)));
    const consequences = [{ what: "addresses", count, total: sum(usage) }, ...sharesOfGone(records, isGone)];
    return { ...removed, consequences };
  }

  decide(key: string, { orchestrator, stored }: Facts): Proposal | undefined {
    const held = stored.nodes.held(key);
    if (held?.kind !== "readable") return undefined;
    const reference = orchestratorReference(held.value.spec);
    if (reference === undefined) return undefined;
    const objectKey = resourceKey("nodes", { name: reference });
    const node = orchestrator.nodes.get(objectKey);
    if (node === undefined) {
      return {
        changes: [{ kind: "delete", key, revision: held.revision }],
        confirm: { absent: objectKey },
        reason: `deleted node ${held.value.metadata.name}: the orchestrator has no node ${reference} any more`,
      };
    }
    if (!this.syncsLabels) return undefined;
    const wanted = withExternal(withLabels(held.value, node.metadata.labels ?? {}), node);
    if (Bun.deepEquals(wanted, held.value)) return undefined;
    return {
      changes: [{ kind: "update", key, value: NODE.codec.write(wanted), revision: held.revision }],
      reason: `copied the labels and external addresses of node ${held.value.metadata.name}`,
    };
  }
}

function withLabels(node: Node, labels: Labels): Node {
  const { labels: present = {}, annotations = {} } = node.metadata;
  const copiedBefore = labelsIn(annotations[SYNCED_ANNOTATION]);
  const own = Object.entries(present).filter(([name]) => !Object.hasOwn(copiedBefore, name));
  const synced = JSON.stringify(Object.fromEntries(Object.entries(labels).toSorted()));
  return {
    ...node,
    metadata: {
      ...node.metadata,
      labels: { ...Object.fromEntries(own), ...labels },
      annotations: { ...annotations, [SYNCED_ANNOTATION]: synced },
    },
  };
}

/** The agent lists the others, which it finds on its host. */
function withExternal(node: Node, { spec: { addresses: reported = [] } }: Node): Node {
  const { addresses = [], ...spec } = node.spec;
  const external = reported.filter(isExternal);
  if (Bun.deepEquals(addresses.filter(isExternal), external)) return node;
  return { ...node, spec: { ...spec, addresses: [...addresses.filter((each) => !isExternal(each)), ...external] } };
}

/** What cannot be read was not copied by us: the labels stay. */
function labelsIn(text: string | undefined): Readonly<Record<string, unknown>> {
  try {
    const labels: unknown = parseJson(text ?? "{}");
    return isObject(labels) ? labels : {};
  } catch {
    return {};
  }
}
