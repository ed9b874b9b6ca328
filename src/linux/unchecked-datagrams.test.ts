import { expect, test } from "bun:test";
import { type Address, formatAddress } from "../ip/address.ts";
import { openAnsweringSocket } from "./unchecked-datagrams.ts";

/** Of this process, so that several runs of the test have the port. */
const HERE: Address = { family: 4, value: 0x7f000000n + BigInt(process.pid % 0xfffff) * 8n + 8n };
const PORT = 9089;
const question = (nonce: string) => `path?${nonce.padEnd(11, ".")}`;
const answer = (nonce: string) => `path!${nonce.padEnd(11, ".")}`;

/** Sends these one after the other; returns what was answered when the last one is. */
async function exchange(isWanted: ((from: Address) => boolean) | undefined, sent: readonly string[]) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const received: string[] = [];
  const client = await Bun.udpSocket({
    hostname: "127.0.0.1",
    socket: {
      data(_, bytes) {
        received.push(bytes.toString());
        if (received.at(-1)?.includes("last")) resolve();
      },
    },
  });
  const answering = openAnsweringSocket(HERE, PORT, isWanted);
  const timer = setInterval(() => answering.answer(), 1);
  try {
    for (const text of sent) client.send(text, PORT, formatAddress(HERE));
    await promise;
    return received;
  } finally {
    clearInterval(timer);
    answering.close();
    client.close();
  }
}

test("a question is answered with no more than was sent, and an answer is not", async () => {
  const sent = [`${question("first")}and more`, answer("first"), "path?short", "other?first......", question("last")];
  expect(await exchange(undefined, sent)).toEqual([answer("first"), answer("last")]);
});

test("only those are answered who are wanted", async () => {
  const asked: string[] = [];
  const isWanted = (from: Address) => asked.push(formatAddress(from)) > 1;
  expect(await exchange(isWanted, [question("first"), question("last")])).toEqual([answer("last")]);
  expect(asked).toEqual(["127.0.0.1", "127.0.0.1"]);
});
