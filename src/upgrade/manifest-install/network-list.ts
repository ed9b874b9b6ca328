/**
 * The network config list of an earlier release as that of this one: what the user has changed is kept, values that the
 * installation of a node fills in are left to it. Pure.
 */
import { identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { isSame } from "../merge/canonical-json.ts";
import { parseJsonText, printJsonText } from "../merge/json-text.ts";
import { mergeThreeWay } from "../merge/three-way.ts";
import { fieldsIn, itemsIn } from "../object-fields.ts";

export interface FormerLists {
  /** Texts. Absent if what was installed is not known: then the live one counts as unchanged, except for its plugins. */
  readonly base?: string | undefined;
  readonly live: string;
  readonly release: string;
  /** As text; "0": detected. */
  readonly mtu: string;
  /** Pods may send from further sources. */
  readonly allowsSourceSpoofing?: boolean;
  /** Types of plugins of the release that are left out. */
  readonly without?: readonly unknown[];
}

/** `undefined` if the live text cannot be read. */
export function translateNetworkList(given: FormerLists): string | undefined {
  const { base, live, release, mtu, allowsSourceSpoofing = false, without = [] } = given;
  const [mine, published] = [parseJsonText(live), parseJsonText(release)];
  if (!isObject(mine) || !isObject(published)) return undefined;
  const plugins = itemsIn(published, "plugins").filter(({ type }) => !without.includes(type));
  const theirs: Fields = { ...published, plugins };
  const before = base === undefined ? undefined : parseJsonText(base);
  const wrapped = wrapper(mine);
  const versions = {
    base: isObject(before) ? mapOwn(normalized(before), withoutMtu) : onlyOwnTypes(normalized(mine)),
    live: normalized(withMtu(mine, mtu)),
    release: wrapped === undefined ? theirs : inDelegate(theirs, wrapped),
  };
  const { value } = mergeThreeWay(versions, "mine");
  const merged = withHostLocal(isObject(value) ? value : {}, versions);
  const list = allowsSourceSpoofing ? mapOwn(merged, withFurtherSources) : merged;
  // The state of host-local is in a directory of this name: with another one, addresses in use would be assigned again.
  const { cniVersion, cniVersions } = theirs;
  return printJsonText({ ...list, name: mine["name"] ?? theirs["name"], cniVersion, cniVersions });
}

function withFurtherSources(own: Fields): Fields {
  return { ...own, feature_control: { ...fieldsIn(own, "feature_control"), allowed_source_prefixes: true } };
}

/** Ranges of host-local that the user has changed are kept as a whole: it would use those of the release too. */
function withHostLocal(list: Fields, { base, live }: { readonly base: Fields; readonly live: Fields }): Fields {
  const edited = fieldsIn(ownOf(live), "ipam");
  if (edited["type"] !== "host-local" || isSame(edited, fieldsIn(ownOf(base), "ipam"))) return list;
  return mapOwn(list, (own) => ({ ...own, ipam: edited }));
}

/** Whether the list has our plugin, by itself or called by another one. */
export function hasOwnPlugin(list: object | undefined): boolean {
  const plugins = itemsIn(list, "plugins");
  return plugins.some((each) => isOwn(each) || isOwn(fieldsIn(each, "delegate")));
}

function ownOf(list: Fields): Fields | undefined {
  const plugins = itemsIn(list, "plugins");
  return plugins.find(isOwn) ?? plugins.map((each) => fieldsIn(each, "delegate")).find(isOwn);
}

function isOwn(plugin: Fields): boolean {
  return plugin["type"] === identity.product;
}

/** The entry that calls our plugin, if our plugin is not called by the runtime. */
function wrapper(list: Fields): Fields | undefined {
  return itemsIn(list, "plugins").find((each) => isOwn(fieldsIn(each, "delegate")));
}

/** Its IPAM is the business of the plugin that calls ours. */
function inDelegate(list: Fields, { delegate: _, ...caller }: Fields): Fields {
  const plugins = itemsIn(list, "plugins").map((each) => {
    if (!isOwn(each)) return each;
    const { ipam: _ipam, ...own } = each;
    return { ...caller, delegate: own };
  });
  return { ...list, plugins };
}

function withMtu(list: Fields, mtu: string): Fields {
  if (!/^[1-9]\d*$/.test(mtu)) return list;
  return mapOwn(list, (own) => (isFilledIn(own["mtu"]) ? { ...own, mtu: Number(mtu) } : own));
}

/** An MTU that the earlier release had fixed is kept as if the user had set it: running pods have it. */
function withoutMtu({ mtu: _, ...own }: Fields): Fields {
  return own;
}

/** Fields that the installation of a node sets, and the credentials of the time before kubeconfigs. */
const NODE_FIELDS = [
  "etcd_endpoints",
  "etcd_key_file",
  "etcd_cert_file",
  "etcd_ca_cert_file",
  "nodename",
  "kubernetes",
];

function normalized(list: Fields): Fields {
  return mapOwn(list, (own) => {
    const kept = Object.entries(own).filter(([name, value]) => !NODE_FIELDS.includes(name) && !isFilledIn(value));
    const policy = Object.entries(fieldsIn(own, "policy")).filter(([, value]) => !/__[A-Z_]+__/.test(String(value)));
    return { ...Object.fromEntries(kept), ...(policy.length === 0 ? {} : { policy: Object.fromEntries(policy) }) };
  });
}

/** Without a base: the plugins of the list were there, and nothing of ours was changed. */
function onlyOwnTypes(list: Fields): Fields {
  return mapOwn(list, (own) => ({ type: own["type"] }));
}

function mapOwn(list: Fields, map: (own: Fields) => Fields): Fields {
  const plugins = itemsIn(list, "plugins").map((each) => {
    if (isOwn(each)) return map(each);
    const delegate = fieldsIn(each, "delegate");
    return isOwn(delegate) ? { ...each, delegate: map(delegate) } : each;
  });
  return { ...list, plugins };
}

function isFilledIn(value: unknown): boolean {
  return typeof value === "string" && /__[A-Z_]+__$/.test(value);
}
