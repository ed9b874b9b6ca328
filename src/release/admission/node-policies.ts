/**
 * What the accounts of plugin and node agent may write, by the node that their token is bound to: a token that was stolen
 * from one node does not change what belongs to another (docs/security.md). Pure. One row per kind of object:
 *
 *   node-records      Nodes: its own; only our annotations and the condition NetworkUnavailable; in the record no pod CIDRs
 *                     but its own. What else the record says is judged by every reader (routing/counted-nodes.ts)
 *   node-pods         pods of the node; only our annotations
 *   node-blocks       its own blocks, each with the name of its CIDR. Of all others only entries that are free or its own,
 *                     before and after: it borrows addresses, gives them back, and takes blocks without an affinity. Besides,
 *                     it takes addresses that wait for a pod, and lets its own wait: the pod may come to any node.
 *                     Which blocks count is not decided here but by every reader (routing/counted-blocks.ts)
 *   node-claims       affinities of blocks to itself
 *   node-handles      handles with its label, or without any, and those of addresses that are kept for pods
 *   node-pools        pools: adds the finalizer of pools with blocks
 *   node-cluster      ClusterInformation: what is there stays, except the release
 *   node-tokens       of agents in pods: tokens that are valid for a day at most and, once every agent requests such, bound to
 *                     its Node
 *   node-host-tokens  of agents on hosts: tokens that are bound to its Node, for a week at most
 *   node-flow-tokens  while flows are on: tokens for the API of flows that are bound to its Node, so that no node speaks for another
 *
 * An API server that does not put the node into a token is not asked: the conditions do not match then.
 */
import { identity, PRODUCT_API } from "../../identity.ts";
import { BLOCK_SIZES } from "../../model/block-sizes.ts";
import { CONTAINER_ATTRIBUTE, KEEP_HANDLE, KEPT_ATTRIBUTE, LAST_NODE_ATTRIBUTE } from "../../model/kept-address.ts";
import { LONGEST_TOKEN_SECONDS } from "../../model/token-lifetime.ts";
import type { KubeObject } from "../kube-object.ts";
import { PLUGIN_ACCOUNT } from "../roles/rules.ts";
import { BINDS_TOKENS, FLOWS_AUDIENCE } from "../workloads/names.ts";
import { constant, FORMER_ANNOTATIONS, NEW_ANNOTATIONS } from "./expressions.ts";
import { bindingObject, matching, policyObject } from "./policy-objects.ts";

const { product, annotationPrefix, labelPrefix } = identity;

/** The spec of the record (datastore/kube/cluster-nodes.ts). */
const NODE_SPEC = `${labelPrefix}node-spec`;

/** Where the accounts are: of a manifest or an installation by hand, and of the operator. */
const NAMESPACES = ["kube-system", identity.systemNamespace];
const ACCOUNTS = NAMESPACES.flatMap((namespace) =>
  [identity.nodeAgent, PLUGIN_ACCOUNT].map((name) => `system:serviceaccount:${namespace}:${name}`),
);

/** Set by the API server from the token: bound to a pod (since Kubernetes 1.30) or to a Node (since 1.31). */
const NODE_OF_TOKEN = "authentication.kubernetes.io/node-name";

const CONDITIONS = [
  { name: "node-account", expression: `request.userInfo.username in [${ACCOUNTS.map(constant).join(", ")}]` },
  {
    name: "bound-to-node",
    expression: `has(request.userInfo.extra) && ${constant(NODE_OF_TOKEN)} in request.userInfo.extra`,
  },
];

const NODE = { name: "node", expression: `request.userInfo.extra[${constant(NODE_OF_TOKEN)}][0]` };

interface Rule {
  readonly name: string;
  readonly operations: readonly ("CREATE" | "UPDATE" | "DELETE")[];
  readonly resource: string;
  readonly group?: string;
  readonly variables?: readonly { readonly name: string; readonly expression: string }[];
  /** In addition to those of all rules. */
  readonly conditions?: readonly { readonly name: string; readonly expression: string }[];
  /** What the expressions may compare with. If it is missing, the policy does not apply. */
  readonly parameters?: {
    readonly kind: { readonly apiVersion: string; readonly kind: string };
    /** Without a namespace: in that of the request. */
    readonly name: string;
  };
  /** Each with what it demands, as the end of "this account, of node X, may …". */
  readonly demands: readonly (readonly [expression: string, may: string])[];
}

const LABELS = "metadata.?labels";
const OWNERS = "metadata.?ownerReferences";
const FINALIZERS = "metadata.?finalizers";

function same(...fields: readonly string[]): string {
  return fields.map((field) => `object.${field} == oldObject.${field}`).join(" && ");
}

/** No member of the section changes but one. Sections of typed objects have no keys for expressions, so they are `dyn`. */
function sameExcept(section: "spec" | "status", member: string): string {
  const [object, former] = ["object", "oldObject"].map((each) => `dyn(${each}).?${section}.orValue({})`);
  return [
    `${object}.all(key, key == ${constant(member)} || ${object}[?key] == ${former}[?key])`,
    `${former}.all(key, key == ${constant(member)} || key in ${object})`,
  ].join(" && ");
}

/** No annotation changes but ours. */
const ONLY_OUR_ANNOTATIONS = (() => {
  const isOurs = `(key.startsWith(${constant(annotationPrefix)}) || key.startsWith(${constant(labelPrefix)}))`;
  return [
    `variables.annotations.all(key, ${isOurs} || variables.annotations[?key] == variables.former[?key])`,
    `variables.former.all(key, ${isOurs} || key in variables.annotations)`,
  ].join(" && ");
})();

const ANNOTATIONS = [NEW_ANNOTATIONS, FORMER_ANNOTATIONS];

const OTHER_CONDITIONS = (object: string) =>
  `${object}.status.?conditions.orValue([]).filter(each, each.type != 'NetworkUnavailable')`;

/** The record as JSON, which expressions cannot read: so it must not hide anything by escapes. Empty if it stays as it is. */
const RECORD = {
  name: "record",
  expression: (() => {
    const [now, before] = ["annotations", "former"].map((each) => `variables.${each}[?${constant(NODE_SPEC)}]`);
    return `${now} == ${before} ? '' : ${now}.orValue('')`;
  })(),
};

/**
 * Each list with that name is written as the agent writes it, and names only what is assigned, with the same text: expressions
 * of Kubernetes 1.30, which clusters with etcd may have, know no CIDRs. Readers compare networks (datastore/kube/cluster-nodes.ts).
 */
const ONLY_ASSIGNED_POD_CIDRS = (() => {
  const lists = String.raw`variables.record.findAll('"podCIDRs":\\[(?:"[^"]*"(?:,"[^"]*")*)?\\]')`;
  const texts = `list.findAll('"[^"]*/[^"]*"').map(quoted, quoted.replace('"', ''))`;
  const isAssigned = "text in object.spec.?podCIDRs.orValue([])";
  return [
    String.raw`!variables.record.contains('\\')`,
    `variables.record.split('podCIDRs').size() == ${lists}.size() + 1`,
    `${lists}.all(list, ${texts}.all(text, ${isAssigned}))`,
  ].join(" && ");
})();

const RECORDS: Rule = {
  name: "node-records",
  operations: ["UPDATE"],
  resource: "nodes/status",
  variables: [...ANNOTATIONS, RECORD],
  demands: [
    ["object.metadata.name == variables.node", "write its own Node only"],
    [ONLY_ASSIGNED_POD_CIDRS, "record only pod CIDRs that spec.podCIDRs of its Node has"],
    [`${same(LABELS, OWNERS, FINALIZERS)} && ${ONLY_OUR_ANNOTATIONS}`, "change our own annotations of its Node only"],
    [
      [sameExcept("status", "conditions"), `${OTHER_CONDITIONS("object")} == ${OTHER_CONDITIONS("oldObject")}`].join(
        " && ",
      ),
      "change the condition NetworkUnavailable of the status only",
    ],
  ],
};

const PODS: Rule = {
  name: "node-pods",
  operations: ["UPDATE"],
  resource: "pods/status",
  variables: ANNOTATIONS,
  demands: [
    ["object.spec.?nodeName.orValue('') == variables.node", "write pods of its own node only"],
    [`${same(LABELS, OWNERS, FINALIZERS)} && ${ONLY_OUR_ANNOTATIONS}`, "change our own annotations of a pod only"],
    [same("?status"), "not change what the kubelet reports about a pod"],
  ],
};

/** Digits of ordinals with base 64: the largest block has 4096 addresses. Expressions have no ranges before Kubernetes 1.34. */
const DIGITS = `[${Array.from({ length: 64 }, (_, digit) => digit).join(", ")}]`;

/** The address is free, or assigned to the node. */
const IS_FREE_OR_OWN = (block: string, index: string) =>
  `(dyn(${index}) == null || ${block}.spec.attributes[${index}].?secondary.?node.orValue('') == variables.node)`;

/** An entry of `attributes` that keeps an address for a pod which does not run (model/kept-address.ts). */
const IS_WAITING = (owner: string) =>
  `(${owner}.?secondary.?${KEPT_ATTRIBUTE}.hasValue() && !${owner}.?secondary.?${CONTAINER_ATTRIBUTE}.hasValue() && !${owner}.?secondary.?node.hasValue())`;

const AFFINITY_OF = (block: string) =>
  `${block} == null || dyn(${block}.spec.?affinity.orValue('')) == null ? '' : ${block}.spec.?affinity.orValue('')`;

const NUMBERS_OF = (block: string) => `${block}.spec.?sequenceNumberForAllocation.orValue({})`;

const EVERY_ORDINAL = (holds: (ordinal: string) => string) => {
  const ordinal = "(high * 64 + low)";
  const isOutside = (first: string) => `${first} >= oldObject.spec.allocations.size()`;
  const inner = `variables.digits.all(low, ${isOutside(ordinal)} || ${holds(ordinal)})`;
  return `variables.digits.all(high, ${isOutside("high * 64")} || ${inner})`;
};

/**
 * Of an address, with the indexes of its owners: free or its own before and after, or the same owner. One that waited is its
 * own or free afterwards; one of its own waits under the same handle.
 */
const IS_ALLOWED_CHANGE = (ordinal: string) => {
  const [before, after] = ["oldObject", "object"].map((block) => `${block}.spec.allocations[${ordinal}]`);
  const isSame = "dyn(was) != null && dyn(is) != null && oldObject.spec.attributes[was] == object.spec.attributes[is]";
  const isOwn = `${IS_FREE_OR_OWN("oldObject", "was")} && ${IS_FREE_OR_OWN("object", "is")}`;
  const [former, present] = ["oldObject.spec.attributes[was]", "object.spec.attributes[is]"];
  const isTaken = `dyn(was) != null && ${IS_WAITING(former)} && ${IS_FREE_OR_OWN("object", "is")}`;
  const waits = [
    `dyn(was) != null && dyn(is) != null && ${IS_FREE_OR_OWN("oldObject", "was")} && ${IS_WAITING(present)}`,
    `${former}.?handle_id == ${present}.?handle_id`,
    `${present}.?secondary.?${LAST_NODE_ATTRIBUTE}.orValue('') == variables.node`,
  ].join(" && ");
  return `[${before}].all(was, [${after}].all(is, (${isOwn}) || (${isSame}) || (${isTaken}) || (${waits})))`;
};

/** The node of a block may write all of it: the rest is not evaluated for the block of each ADD. */
const IS_OWN = "(variables.affinity == variables.own && variables.formerAffinity == variables.own)";

const FORMER_INDEX = "oldObject.spec.allocations[int(ordinal)]";

const ASSIGNED_IN = (block: string) => `${block}.spec.allocations.filter(index, dyn(index) != null).size()`;

/** As `blockObjectName` writes it. Before a colon it would not be a name: such blocks have a digest, which only readers check. */
const NAME_OF_CIDR = [".", ":", "/"].reduce(
  (text, separator) => `${text}.replace(${constant(separator)}, '-')`,
  "object.spec.cidr",
);

const BLOCKS: Rule = {
  name: "node-blocks",
  operations: ["CREATE", "UPDATE", "DELETE"],
  group: PRODUCT_API.group,
  resource: "ipamblocks",
  variables: [
    { name: "own", expression: "'host:' + variables.node" },
    { name: "formerAffinity", expression: AFFINITY_OF("oldObject") },
    { name: "affinity", expression: AFFINITY_OF("object") },
    { name: "digits", expression: DIGITS },
  ],
  demands: [
    ["oldObject != null || variables.affinity == variables.own", "create blocks of its own node only"],
    [
      `object == null || object.spec.cidr.startsWith(':') || object.metadata.name == ${NAME_OF_CIDR}`,
      "write blocks with the name of their CIDR only",
    ],
    [
      `object == null || oldObject != null || int(object.spec.cidr.split('/')[1]) >= (object.spec.cidr.contains(':') ? ${BLOCK_SIZES[6].shortest} : ${BLOCK_SIZES[4].shortest})`,
      "create blocks of the sizes that pools have only",
    ],
    [
      "object == null || oldObject == null || variables.affinity == variables.formerAffinity || (variables.formerAffinity in ['', variables.own] && variables.affinity in ['', variables.own])",
      "claim blocks for its own node only, and release only its own claims",
    ],
    [
      `object != null || variables.formerAffinity == variables.own || (variables.formerAffinity == '' && oldObject.spec.allocations.all(index, ${IS_FREE_OR_OWN("oldObject", "index")}))`,
      "not delete blocks with addresses of other nodes",
    ],
    [
      `object == null || oldObject == null || ${IS_OWN} || (object.spec.allocations.size() == oldObject.spec.allocations.size() && ${EVERY_ORDINAL(IS_ALLOWED_CHANGE)})`,
      "assign and release only addresses of its own node in blocks of others",
    ],
    [
      `object == null || oldObject == null || ${IS_OWN} || (${[
        same(OWNERS, FINALIZERS, "spec.?deleted"),
        `object.spec.unallocated.size() + ${ASSIGNED_IN("object")} == oldObject.spec.unallocated.size() + ${ASSIGNED_IN("oldObject")}`,
        `${NUMBERS_OF("oldObject")}.all(ordinal, int(ordinal) >= oldObject.spec.allocations.size() || ${IS_FREE_OR_OWN("oldObject", FORMER_INDEX)} || ${NUMBERS_OF("object")}[?ordinal] == ${NUMBERS_OF("oldObject")}[?ordinal] || ${IS_WAITING(`oldObject.spec.attributes[${FORMER_INDEX}]`)})`,
      ].join(" && ")})`,
      "change nothing else in blocks of others",
    ],
  ],
};

const AFFINITIES: Rule = {
  name: "node-claims",
  operations: ["CREATE", "UPDATE", "DELETE"],
  group: PRODUCT_API.group,
  resource: "blockaffinities",
  demands: [
    [
      "(object == null || object.spec.node == variables.node) && (oldObject == null || oldObject.spec.node == variables.node)",
      "write claims of its own node only",
    ],
  ],
};

/** Longer names are digests in labels. */
const LONGEST_LABEL = 63;

const HANDLES: Rule = {
  name: "node-handles",
  operations: ["CREATE", "UPDATE", "DELETE"],
  group: PRODUCT_API.group,
  resource: "ipamhandles",
  variables: [
    { name: "label", expression: handleNode("object") },
    { name: "formerLabel", expression: handleNode("oldObject") },
    // Whatever node the pod comes to uses them (model/kept-address.ts).
    {
      name: "isKept",
      expression: `(object == null ? oldObject : object).metadata.name.matches(${constant(KEEP_HANDLE)})`,
    },
  ],
  demands: [
    [
      `variables.isKept || size(variables.node) > ${LONGEST_LABEL} || (variables.label in ['', variables.node] && variables.formerLabel in ['', variables.node])`,
      "write handles of its own node only",
    ],
  ],
};

/** Empty: not known. */
function handleNode(object: string): string {
  return `${object} == null ? '' : ${object}.metadata.?labels[?${constant(`${labelPrefix}node`)}].orValue('')`;
}

const POOLS: Rule = {
  name: "node-pools",
  operations: ["UPDATE"],
  group: PRODUCT_API.group,
  resource: "ippools",
  variables: [
    { name: "finalizers", expression: "object.metadata.?finalizers.orValue([])" },
    { name: "formerFinalizers", expression: "oldObject.metadata.?finalizers.orValue([])" },
  ],
  demands: [
    [
      [
        same("spec", LABELS, "metadata.?annotations", OWNERS),
        "variables.formerFinalizers.all(each, each in variables.finalizers)",
        `variables.finalizers.all(each, each == ${constant(`${labelPrefix}blocks`)} || each in variables.formerFinalizers)`,
      ].join(" && "),
      `only add the finalizer ${labelPrefix}blocks to a pool`,
    ],
  ],
};

const CLUSTER: Rule = {
  name: "node-cluster",
  operations: ["UPDATE"],
  group: PRODUCT_API.group,
  resource: "clusterinformations",
  variables: ANNOTATIONS,
  demands: [
    [same("spec.?datastoreReady"), "neither lock nor unlock the datastore"],
    [
      `${sameExcept("spec", `${product}Version`)} && ${same(LABELS, OWNERS, FINALIZERS)} && ${ONLY_OUR_ANNOTATIONS}`,
      "raise the release of the cluster only",
    ],
  ],
};

/**
 * Agents of a former release request tokens that are not bound. What counts is the DaemonSet: its template is that of agents
 * which bind them, and no pod is left of another one. A node without a pod does not matter: a thief could delete his.
 */
const EVERY_AGENT_BINDS_TOKENS = [
  `params.spec.template.?metadata.?annotations[?${constant(BINDS_TOKENS)}].orValue('') == 'true'`,
  "params.status.?observedGeneration.orValue(0) == params.metadata.generation",
  "params.status.?updatedNumberScheduled.orValue(0) == params.status.?currentNumberScheduled.orValue(0)",
].join(" && ");

const LONGEST_SECONDS = 24 * 60 * 60;

const IS_BOUND_TO_OWN_NODE =
  "object.spec.?boundObjectRef.?kind.orValue('') == 'Node' && object.spec.?boundObjectRef.?name.orValue('') == variables.node";

/** Also set by the API server: the token is that of a pod. */
const IS_OF_POD = `'authentication.kubernetes.io/pod-name' in request.userInfo.extra`;

const TOKENS: Rule = {
  name: "node-tokens",
  operations: ["CREATE"],
  resource: "serviceaccounts/token",
  conditions: [{ name: "of-pod", expression: IS_OF_POD }],
  parameters: { kind: { apiVersion: "apps/v1", kind: "DaemonSet" }, name: identity.nodeAgent },
  demands: [
    [
      `object.spec.?expirationSeconds.orValue(0) <= ${LONGEST_SECONDS}`,
      "request tokens that are valid for a day at most",
    ],
    [
      `!(${EVERY_AGENT_BINDS_TOKENS}) || (${IS_BOUND_TO_OWN_NODE})`,
      "request tokens that are bound to its own Node only",
    ],
  ],
};

/** Agents that were installed by hand: there is no DaemonSet, and no former release of them requests tokens. */
const HOST_TOKENS: Rule = {
  name: "node-host-tokens",
  operations: ["CREATE"],
  resource: "serviceaccounts/token",
  conditions: [{ name: "of-host", expression: `!(${IS_OF_POD})` }],
  demands: [
    [
      `object.spec.?expirationSeconds.orValue(0) <= ${LONGEST_TOKEN_SECONDS}`,
      "request tokens that are valid for a week at most",
    ],
    [IS_BOUND_TO_OWN_NODE, "request tokens that are bound to its own Node only"],
  ],
};

const FLOW_TOKENS: Rule = {
  name: "node-flow-tokens",
  operations: ["CREATE"],
  resource: "serviceaccounts/token",
  conditions: [{ name: "for-flows", expression: `${constant(FLOWS_AUDIENCE)} in object.spec.?audiences.orValue([])` }],
  demands: [[IS_BOUND_TO_OWN_NODE, "request tokens for the API of flows that are bound to its own Node only"]],
};

export const NODE_TOKENS = `${product}-${TOKENS.name}`;

const RULES: readonly Rule[] = [RECORDS, PODS, BLOCKS, AFFINITIES, HANDLES, POOLS, CLUSTER, TOKENS, HOST_TOKENS];

export function nodeAccountPolicies(): readonly KubeObject[] {
  return policiesFor(RULES);
}

export function flowTokenPolicy(): readonly KubeObject[] {
  return policiesFor([FLOW_TOKENS]);
}

function policiesFor(rules: readonly Rule[]): readonly KubeObject[] {
  return rules.flatMap(
    ({ name, operations, resource, group, conditions = [], parameters, variables = [], demands }) => {
      const policy = `${product}-${name}`;
      return [
        policyObject(policy, {
          ...(parameters === undefined ? {} : { paramKind: parameters.kind }),
          matchConstraints: matching(operations, [resource], group),
          matchConditions: [...CONDITIONS, ...conditions],
          variables: [NODE, ...variables],
          validations: demands.map(([expression, may]) => ({
            expression,
            messageExpression: `'this account, with a token of node "' + variables.node + ${constant(`", may ${may}`)}`,
            reason: "Forbidden",
          })),
        }),
        bindingObject(
          policy,
          parameters === undefined ? {} : { paramRef: { name: parameters.name, parameterNotFoundAction: "Allow" } },
        ),
      ];
    },
  );
}
