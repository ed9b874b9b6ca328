/** Which sizes of packets pass a path, found out with packets that need nothing from network cards. */
import type { Family } from "../ip/address.ts";
import { type AskingSocket, type DatagramSocket, SMALL_PACKET } from "./unchecked-datagrams.ts";

export interface Patience {
  readonly tries: number;
  readonly replyMilliseconds: number;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

const POLL_MILLISECONDS = 20;
/** Every network carries such packets. */
const LEAST_MTU: Readonly<Record<Family, number>> = { 4: 576, 6: 1_280 };

export async function isPassing(
  socket: AskingSocket,
  size: number,
  { tries, replyMilliseconds, wait, signal }: Patience,
): Promise<boolean> {
  for (let left = tries; left > 0 && !signal.aborted; left -= 1) {
    socket.ask(size);
    for (let waited = 0; waited < replyMilliseconds && !signal.aborted; waited += POLL_MILLISECONDS) {
      await wait(POLL_MILLISECONDS, signal);
      if (socket.isAnswered()) return true;
    }
  }
  return false;
}

/** How many of so many packets, sent at once, pass. */
export async function countPassing(
  socket: Pick<DatagramSocket, "askMany" | "countAnswers">,
  { size, count }: { readonly size: number; readonly count: number },
  { replyMilliseconds, wait, signal }: Omit<Patience, "tries">,
): Promise<number> {
  socket.askMany(size, count);
  let passed = 0;
  for (let waited = 0; waited < replyMilliseconds && passed < count && !signal.aborted; waited += POLL_MILLISECONDS) {
    await wait(POLL_MILLISECONDS, signal);
    passed = socket.countAnswers();
  }
  return passed;
}

/** A path has few hops that are each narrower than the last. */
const MOST_HOPS = 8;

/** What the kernel believes about the path when every hop that says that a packet is too large has been heard. */
export async function knownMtu(socket: DatagramSocket, patience: Patience): Promise<number> {
  let mtu = socket.mtu();
  for (let left = MOST_HOPS; left > 0 && !(await isPassing(socket, mtu, patience)); left -= 1) {
    const heard = socket.mtu();
    if (heard >= mtu) break;
    mtu = heard;
  }
  return mtu;
}

export interface MeasuredPath {
  readonly family: Family;
  readonly mtu: number;
}

/**
 * The size of the largest packet that passes, not more than `mtu`, after a small one has. `undefined`: it passes no more, so
 * the other end may have gone meanwhile, and nothing is known about sizes.
 */
export async function largestPassing(
  socket: AskingSocket,
  path: MeasuredPath,
  patience: Patience,
): Promise<number | undefined> {
  const largest = await searchLargest(socket, path, patience);
  if (largest === path.mtu) return largest;
  return largest > SMALL_PACKET && (await isPassing(socket, largest, patience)) ? largest : undefined;
}

async function searchLargest(socket: AskingSocket, { family, mtu }: MeasuredPath, patience: Patience): Promise<number> {
  if (await isPassing(socket, mtu, patience)) return mtu;
  let [works, fails] = [SMALL_PACKET, mtu];
  const least = LEAST_MTU[family];
  if (least < mtu && (await isPassing(socket, least, patience))) works = least;
  while (fails - works > 1 && !patience.signal.aborted) {
    const middle = Math.floor((works + fails) / 2);
    if (await isPassing(socket, middle, patience)) works = middle;
    else fails = middle;
  }
  return works;
}
