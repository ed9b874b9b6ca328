/**
 * Removes links for many callers in one process: the kernel takes some 15 ms for
 * a link, waiting mostly, and no longer for fifty that are removed together.
 * So one removal is under way at a time, aside, and whoever comes meanwhile is
 * part of the next.
 *
 * Links are removed together by a group that they are put into just for this. A
 * process that dies in between leaves them as they were, but for their group.
 */
import { isKernelError, type KernelError } from "../kernel-error.ts";
import { attempt, attemptAside, closeNetlinkSocket, type NetlinkSocket, openNetlinkSocket } from "../netlink-socket.ts";
import { changeLink, deleteLink, deleteLinkGroup, type LinkReference } from "./link.ts";

interface Wish {
  readonly link: LinkReference;
  readonly settle: (refusal: KernelError | undefined) => void;
}

/** So that a number is nobody else's: groups that people give to links are small. */
const LOWEST_GROUP = 0x4000_0000;

let wishes: Wish[] = [];
let isUnderWay = false;

/** Of links in this process's own network namespace. Answers why the kernel refused; one that is gone is no refusal. */
export function removeLinkTogether(link: LinkReference): Promise<KernelError | undefined> {
  return new Promise((settle) => {
    wishes.push({ link, settle });
    if (!isUnderWay) void removeAll();
  });
}

async function removeAll(): Promise<void> {
  isUnderWay = true;
  const socket = openNetlinkSocket("route");
  try {
    while (wishes.length > 0) {
      const batch = wishes;
      wishes = [];
      await removeBatch(socket, batch);
    }
  } finally {
    isUnderWay = false;
    closeNetlinkSocket(socket);
  }
}

async function removeBatch(socket: NetlinkSocket, batch: readonly Wish[]): Promise<void> {
  if (batch.length > 1 && (await removeAsGroup(socket, batch))) {
    for (const { settle } of batch) settle(undefined);
    return;
  }
  for (const { link, settle } of batch) {
    const [refusal] = await attemptAside(socket, [deleteLink(link)]);
    settle(isGone(refusal) ? undefined : refusal);
  }
}

/** Answers `false` where something was refused: then each is removed by itself, and told its own reason. */
async function removeAsGroup(socket: NetlinkSocket, batch: readonly Wish[]): Promise<boolean> {
  const group = LOWEST_GROUP + Math.floor(Math.random() * LOWEST_GROUP);
  const joined = attempt(
    socket,
    batch.map(({ link }) => changeLink(link, { group })),
  );
  if (joined.some((refusal) => refusal !== undefined && !isGone(refusal))) return false;
  const [refusal] = await attemptAside(socket, [deleteLinkGroup(group)]);
  return refusal === undefined || isGone(refusal);
}

function isGone(refusal: KernelError | undefined): boolean {
  return refusal !== undefined && isKernelError(refusal, "ENODEV");
}
