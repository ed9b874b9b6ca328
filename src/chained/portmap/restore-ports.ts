/**
 * Writes the ports of running containers again after another program flushed the ruleset, from the files that their
 * ADDs left (record-file.ts).
 *
 *   files of this host ──▶ owners that lack something ──▶ those whose namespace is not certainly gone ──▶ as ADD
 *                                                     └──▶ files of the others are removed
 *
 * Nothing is taken from another owner: a port that somebody else got meanwhile stays theirs. If there is nothing to do,
 * nothing is written: the node agent comes here after every change of any rule.
 */
import { describeFailure } from "../../errors.ts";
import type { Family } from "../../ip/address.ts";
import type { FileFolder } from "../../linux/file-folder.ts";
import type { NetlinkSocket, SocketOpener } from "../../linux/netlink-socket.ts";
import { areOfDifferentNetns, isNetnsGone, isNetnsPathVisible, markOwnNetns } from "../../linux/netns-mark.ts";
import { findElements, listElements } from "../../linux/nftables/read.ts";
import type { TableReference } from "../../linux/nftables/ruleset.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import { findLinkByIndex } from "../../linux/rtnetlink/link.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import { quoted } from "../../quote.ts";
import { assignPorts } from "./assign-ports.ts";
import { assignChanges } from "./changes.ts";
import { formatHostPort } from "./claim.ts";
import { keysOf, readConflicts } from "./conflicts.ts";
import { serveLoopback, takeBackLoopbackSources } from "./loopback-sources.ts";
import { isOwnedBy, type OwnedElements } from "./owned-elements.ts";
import { isSameContainer } from "./port-owner.ts";
import { claimsIn, fieldsOf, type PortRecord, podAddressOf, type RecordSet } from "./port-records.ts";
import { type ReadRecord, readRecord, readRecordText } from "./read-record-file.ts";
import { hasAllRules, type RuleHead, readRuleHeads } from "./read-records.ts";
import { ownerIdOf, type RecordedPorts } from "./record-file.ts";
import { releaseExactly } from "./release.ts";
import { SET, tableOf } from "./table.ts";
import { forgetUdp } from "./udp.ts";

/** Each time an ADD or DEL of the same container replaced the file. */
const ATTEMPTS = 10;

type Warn = (message: string) => void;

/** Returns the tables that were written. What cannot be restored is warned about. */
export async function restoreHostPorts(
  kernel: SocketOpener,
  socket: NetlinkSocket,
  folder: FileFolder,
  warn: Warn,
): Promise<readonly TableReference[]> {
  if (folder.changedAt() === undefined) return [];
  const written = new Set<Family>();
  const host = markOwnNetns();
  const known = tablesReadOnce(socket);
  for (const name of folder.list()) {
    const id = ownerIdOf(name);
    if (id === undefined) continue;
    try {
      const read = readRecord(folder, { name, id });
      if (read === undefined || areOfDifferentNetns(read.recorded.hostNetns, host)) continue;
      const { recordSets } = read.recorded;
      if (recordSets.every((each) => isInPlace(each, known))) continue;
      if (isContainerGone(read)) {
        removeIfVisiblyGone({ folder, name, warn }, read);
        continue;
      }
      for (const family of await restoreOwner(kernel, socket, { folder, name, id, host, warn })) {
        written.add(family);
        known.forgetRules(family);
      }
    } catch (failure) {
      warn(`Cannot restore the host ports that "${folder.path}/${name}" records: ${describeFailure(failure)}`);
    }
  }
  return ([4, 6] as const).filter((family) => written.has(family)).map(tableOf);
}

function isContainerGone({ recorded }: ReadRecord): boolean {
  return isNetnsGone(recorded.recordSets[0]?.netns);
}

/**
 * DEL or GC of the container may never come, and each pass would look for its processes again. The file stays if the
 * namespace may be hidden from this process, if a former release wrote it, which did not record its host, and if an ADD
 * of the same name has replaced it.
 */
function removeIfVisiblyGone(
  { folder, name, warn }: Pick<RecordFile, "folder" | "name" | "warn">,
  { text, recorded }: ReadRecord,
): void {
  const { recordSets, hostNetns } = recorded;
  if (hostNetns === undefined || !isNetnsPathVisible(recordSets[0]?.netns ?? "")) return;
  if (readRecordText(folder, name) !== text) return;
  try {
    folder.remove(name);
  } catch (failure) {
    const file = quoted(`${folder.path}/${name}`);
    warn(`Cannot remove the record ${file} of a container that is gone: ${describeFailure(failure)}`);
  }
}

interface RecordFile {
  readonly folder: FileFolder;
  readonly name: string;
  readonly id: Uint8Array;
  /** The mark of the current network namespace. */
  readonly host: string;
  readonly warn: Warn;
}

/**
 * Until the file is the one that was written from. If an ADD or a DEL of the container replaced it meanwhile, what was
 * written is outdated, and that call may have been too early to see it. Only that is released: an ADD that could not
 * record its ports removes the file too.
 */
async function restoreOwner(kernel: SocketOpener, socket: NetlinkSocket, file: RecordFile): Promise<Iterable<Family>> {
  const { folder, name, id, host, warn } = file;
  const families = new Set<Family>();
  for (let tries = 0; tries < ATTEMPTS; tries++) {
    const read = readRecord(folder, file);
    const isCurrent = () => readRecordText(folder, name) === read?.text;
    let written: readonly RecordSet[] = [];
    const noteWritten = (recordSets: readonly RecordSet[]) => {
      written = recordSets;
    };
    let failure: unknown;
    try {
      if (read !== undefined && !areOfDifferentNetns(read.recorded.hostNetns, host) && !isContainerGone(read)) {
        await writeAgain(kernel, socket, { ...read.recorded, warn, isCurrent, noteWritten });
      }
    } catch (cause) {
      failure = cause;
    }
    for (const { family } of written) families.add(family);
    if (isCurrent()) {
      if (failure !== undefined) throw failure;
      return families;
    }
    const isWritten = (owned: OwnedElements) => written.some((recordSet) => areElementsOf(recordSet, owned));
    takeBackLoopbackSources(socket, await releaseExactly(socket, id, isWritten));
  }
  return families;
}

interface Rewrite extends RecordedPorts {
  readonly warn: Warn;
  readonly isCurrent: () => boolean;
  /** Called before they are written, and again if they were not. */
  readonly noteWritten: (recordSets: readonly RecordSet[]) => void;
}

async function writeAgain(
  kernel: SocketOpener,
  socket: NetlinkSocket,
  { recordSets, loopback, warn, isCurrent, noteWritten }: Rewrite,
): Promise<void> {
  const lacking = recordSets
    .map((recordSet) => withoutOthers(socket, recordSet, warn))
    .filter((recordSet) => claimsIn(recordSet).length > 0 && !isInPlace(recordSet, tablesNow(socket)));
  if (lacking.length === 0) return;
  noteWritten(lacking);
  let isOutdated = false;
  await assignPorts(socket, lacking, () => {
    isOutdated = !isCurrent();
    return !isOutdated;
  });
  if (isOutdated) return noteWritten([]);
  // Of clients whose packets met no port meanwhile.
  for (const claim of lacking.flatMap(claimsIn)) forgetUdp(socket, claim, warn);
  const pod = podAddressOf(lacking, 4);
  const isLinkThere =
    loopback && withRouteSocket(kernel, (route) => findLinkByIndex(route, loopback.index)?.name === loopback.name);
  const warnAbout = (message: string) => warn(`${quoted(lacking[0]?.owner.name ?? "")}: ${message}`);
  if (isLinkThere && pod !== undefined) serveLoopback(socket, { link: loopback, pod }, warnAbout);
}

/** Whether the owner has nothing in the family but what the record set says, for the same namespace. */
function areElementsOf({ family, netns, records }: RecordSet, owned: OwnedElements): boolean {
  // The comment may be truncated.
  if (owned.family !== family || owned.netns === undefined || !netns.startsWith(owned.netns)) return false;
  return owned.records.every((each) => records.some((record) => Bun.deepEquals(fieldsOf(record), fieldsOf(each))));
}

/** Without what somebody else has now, whose container is not gone. */
function withoutOthers(socket: NetlinkSocket, recordSet: RecordSet, warn: Warn): RecordSet {
  const { family, owner, records } = recordSet;
  const holders = tablesNow(socket).find(family, SET.owners, records.flatMap(keysOf));
  if (holders.every((holder) => holder === undefined || isOwnedBy(holder, owner.id))) return recordSet;
  const { rivals } = readConflicts(socket, recordSet);
  const isFree = (record: PortRecord): boolean => {
    const met = keysOf(record).flatMap((key) => rivals.get(key.toHex()) ?? []);
    const rival = met.find(({ isGone }) => !isGone);
    if (rival !== undefined && record.kind === "port" && !isSameContainer(rival.kept.id, owner.id)) {
      const port = `Host port ${formatHostPort(record.claim)} of ${quoted(owner.name)}`;
      warn(`${port} is not restored: it belongs to ${quoted(rival.name)} now`);
    }
    return rival === undefined;
  };
  return { ...recordSet, records: records.filter(isFree) };
}

/** What is in the tables. */
interface Tables {
  /** The elements of these keys, in their order. */
  find(family: Family, set: string, keys: readonly Uint8Array[]): readonly (NftElement | undefined)[];
  rules(family: Family): readonly RuleHead[];
}

function tablesNow(socket: NetlinkSocket): Tables {
  return {
    find: (family, set, keys) => findElements(socket, tableOf(family), set, [...keys]),
    rules: (family) => readRuleHeads(socket, family),
  };
}

/** Each set is read as a whole, and once, as the rules are: there may be many owners, of whom usually none lacks anything. */
function tablesReadOnce(socket: NetlinkSocket): Tables & { forgetRules(family: Family): void } {
  const sets = new Map<string, ReadonlyMap<string, NftElement>>();
  const rules = new Map<Family, readonly RuleHead[]>();
  return {
    find(family, set, keys) {
      const name = `${family} ${set}`;
      const elements =
        sets.get(name) ?? new Map(listElements(socket, tableOf(family), set).map((each) => [each.key.toHex(), each]));
      sets.set(name, elements);
      return keys.map((key) => elements.get(key.toHex()));
    },
    rules(family) {
      const heads = rules.get(family) ?? readRuleHeads(socket, family);
      rules.set(family, heads);
      return heads;
    },
    forgetRules: (family) => rules.delete(family),
  };
}

/** Whether the table has all rules, and all elements that an ADD would write. */
function isInPlace(recordSet: RecordSet, tables: Tables): boolean {
  const { family } = recordSet;
  const areElementsThere = assignChanges(recordSet).every((change) => {
    if (change.kind !== "add-elements" && change.kind !== "create-elements") return true;
    const keys = change.elements.map(({ key }) => key);
    const found = tables.find(family, change.set, keys);
    return change.elements.every((element, index) => isEqualElement(element, found[index]));
  });
  return areElementsThere && hasAllRules(tables.rules(family), recordSet);
}

function isEqualElement({ data }: NftElement, found: NftElement | undefined): boolean {
  if (found === undefined) return false;
  return !(data instanceof Uint8Array) || Bun.deepEquals(new Uint8Array(data), found.data);
}
