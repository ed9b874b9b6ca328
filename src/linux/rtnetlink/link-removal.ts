/**
 * Removes links for many callers in one process that goes on.
 *
 * Removing a link takes the kernel 15 ms, but the link is gone after one: no
 * route, no address, no name is left. The rest is a wait for whoever may still
 * look at it, during which the call does not return. So a thread of the language
 * runtime makes the call and waits, and the caller goes on once the link is gone.
 *
 * Whoever comes while a removal begins is part of the next, by a group that the
 * links are put into just for this: fifty take no longer than one. A process that
 * dies in between leaves them as they were, but for their group.
 */
import { isKernelError, type KernelError } from "../kernel-error.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { attempt, attemptAside, closeNetlinkSocket, openNetlinkSocket } from "../netlink-socket.ts";
import { changeLink, deleteLink, deleteLinkGroup, hasLink } from "./link.ts";
import { withRouteSocket } from "./route-socket.ts";

interface KnownLink {
  readonly name: string;
  readonly index: number;
}

interface Wish {
  readonly link: KnownLink;
  readonly settle: (refusal: KernelError | undefined) => void;
}

type Outcome = { readonly refusal: KernelError | undefined };

/** So that a number is nobody else's: groups that people give to links are small. */
const LOWEST_GROUP = 0x4000_0000;
/** Each waits on a thread that others may need, too. */
const MOST_WAITING = 4;
/** Mostly the first look waits in the kernel until the link is gone. Later ones give the thread time that has not begun yet. */
const FIRST_LOOKS = 3;
const LOOK_MILLISECONDS = 1;

let wishes: Wish[] = [];
let isBusy = false;
const waiting = new Set<Promise<unknown>>();

/** Of links in this process's own network namespace. Answers why the kernel refused; one that is gone is no refusal. */
export function removeLinkTogether(link: KnownLink): Promise<KernelError | undefined> {
  return new Promise((settle) => {
    wishes.push({ link, settle });
    if (!isBusy) void removeAll();
  });
}

async function removeAll(): Promise<void> {
  isBusy = true;
  while (wishes.length > 0) {
    while (waiting.size >= MOST_WAITING) await Promise.race(waiting);
    const batch = wishes;
    wishes = [];
    await removeBatch(batch);
  }
  isBusy = false;
}

async function removeBatch(batch: readonly Wish[]): Promise<void> {
  const group = batch.length > 1 ? joinGroup(batch) : undefined;
  if (group !== undefined && (await removeNow(deleteLinkGroup(group), batch)).refusal === undefined) {
    for (const { settle } of batch) settle(undefined);
    return;
  }
  // Alone, or refused together: then each is removed by itself, and told its own reason.
  for (const wish of batch) wish.settle((await removeNow(deleteLink(wish.link), [wish])).refusal);
}

/** `undefined` where a link cannot join. */
function joinGroup(batch: readonly Wish[]): number | undefined {
  const group = LOWEST_GROUP + Math.floor(Math.random() * LOWEST_GROUP);
  const refusals = withRouteSocket((socket) =>
    attempt(
      socket,
      batch.map(({ link }) => changeLink(link, { group })),
    ),
  );
  return refusals.every((refusal) => refusal === undefined || isGone(refusal)) ? group : undefined;
}

/** Comes back when the links are gone, or the kernel has refused. */
async function removeNow(removal: NetlinkRequest, batch: readonly Wish[]): Promise<Outcome> {
  const socket = openNetlinkSocket("route");
  const returned = attemptAside(socket, [removal])
    .then(([refusal]): Outcome => ({ refusal: isGone(refusal) ? undefined : refusal }))
    .finally(() => {
      waiting.delete(returned);
      closeNetlinkSocket(socket);
    });
  waiting.add(returned);
  const look = { isOver: false };
  try {
    return await Promise.race([returned, whenGone(batch, look)]);
  } finally {
    look.isOver = true;
  }
}

/** All links of a batch go at the same time, under one lock of the kernel. */
async function whenGone(batch: readonly Wish[], look: { readonly isOver: boolean }): Promise<Outcome> {
  const socket = openNetlinkSocket("route");
  try {
    for (let looks = 0; ; looks += 1) {
      await Bun.sleep(looks < FIRST_LOOKS ? 0 : LOOK_MILLISECONDS);
      if (look.isOver || !batch.some(({ link }) => hasLink(socket, link.index))) return { refusal: undefined };
    }
  } finally {
    closeNetlinkSocket(socket);
  }
}

function isGone(refusal: KernelError | undefined): boolean {
  return refusal !== undefined && isKernelError(refusal, "ENODEV");
}
