/**
 * Which containers of this host use the network, for whoever removes it: those with a link of our plugin, and those of
 * other plugins whose ports our portmap publishes. Found without the datastore, which only gives them their names.
 */
import type { RunningOwners } from "../../chained/portmap/running-owners.ts";
import { isJsonObject } from "../../cni/json.ts";
import { counted, listed } from "../../counted.ts";
import type { Entry } from "../../datastore/datastore.ts";
import { identity } from "../../identity.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";

export interface NetworkUser {
  /** Empty if the link does not say it. */
  readonly containerId: string;
  /** The host's end of its link; absent if another plugin connected it. */
  readonly link?: string;
  /** Of host ports, if nothing but the path of it is known. */
  readonly record?: string;
}

/** The alias of a link is the owner of its host ports, too. One user per container. */
export function networkUsers(links: readonly Link[], { owners, unreadable }: RunningOwners): readonly NetworkUser[] {
  const own = links.filter(({ name }) => name.startsWith(identity.interfacePrefix));
  const users = own.map(({ name, alias = "" }): NetworkUser => ({ containerId: containerIn(alias), link: name }));
  const all = [
    ...users,
    ...owners.map((owner): NetworkUser => ({ containerId: containerIn(owner) })),
    ...unreadable.map((record): NetworkUser => ({ containerId: "", record })),
  ];
  return all.filter(
    ({ containerId }, index) =>
      containerId === "" || all.findIndex((other) => other.containerId === containerId) === index,
  );
}

/** None of the three parts contains a slash. */
function containerIn(mark: string): string {
  const [, containerId = "", ...others] = mark.split("/");
  return others.length === 1 ? containerId : "";
}

const MOST_NAMES = 10;
/** As runtimes show an ID. */
const SHORT_ID = 12;

/** `endpoints`: those that could be read. "2 containers use it: db, web". */
export function describeUsers(users: readonly NetworkUser[], endpoints: readonly Entry[]): string {
  const known = endpoints.flatMap((entry) => endpointNameIn(entry) ?? []);
  const names = users
    .map((user) => known.find((each) => isEndpointOf(user, each))?.name ?? unnamed(user))
    .toSorted((left, right) => left.localeCompare(right, "en"));
  const verb = users.length === 1 ? "uses" : "use";
  return `${counted(users.length, "container")} ${verb} it: ${listed(names, MOST_NAMES)}`;
}

interface EndpointName {
  readonly name: string;
  readonly containerId: unknown;
  readonly link: unknown;
}

/** `undefined` if it has no name for people, or is not an endpoint. */
function endpointNameIn({ value }: Entry): EndpointName | undefined {
  const { metadata, spec } = objectIn(value);
  if (!isJsonObject(metadata) || !isJsonObject(spec)) return undefined;
  const { pod, workload, containerID: containerId, interfaceName: link } = spec;
  const { namespace } = metadata;
  if (typeof pod === "string") return { name: `${namespace}/${pod}`, containerId, link };
  return typeof workload === "string" ? { name: workload, containerId, link } : undefined;
}

function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

function isEndpointOf({ containerId, link }: NetworkUser, known: EndpointName): boolean {
  return (containerId !== "" && known.containerId === containerId) || (link !== undefined && known.link === link);
}

function unnamed({ containerId, link, record }: NetworkUser): string {
  if (containerId === "") return link ?? `one whose record ${quoted(record ?? "")} cannot be read`;
  return /^[0-9a-f]{64}$/.test(containerId) ? containerId.slice(0, SHORT_ID) : containerId;
}
