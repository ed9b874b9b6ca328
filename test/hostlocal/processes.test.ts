/** Many processes on one network at once, some of them upstream's, and processes that are killed. */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  callHostLocal,
  configOf,
  environmentOf,
  filesOf,
  type HostLocalCall,
  OURS,
  upstreamPrograms,
} from "../support/host-local.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const folder = temporaryDirectory("hostlocal-processes");
afterAll(() => folder.remove());

const PROCESSES = 50;
/** 50 addresses for 50 containers: if one is assigned twice or lost, there are too few. */
const EXACT = { ranges: [[{ subnet: "10.1.2.0/24", rangeStart: "10.1.2.10", rangeEnd: "10.1.2.59" }]] };

const everyContainer = Array.from({ length: PROCESSES }, (_, index) => `pod${index}`);

function reservationsIn(dataDir: string): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(filesOf(dataDir)).filter(([name]) => !name.startsWith("last_reserved")));
}

async function addressesOfAll(programFor: (index: number) => string, dataDir: string): Promise<readonly string[]> {
  const runs = everyContainer.map((containerId, index) =>
    callHostLocal({ program: programFor(index), command: "ADD", dataDir, containerId, ipam: EXACT }),
  );
  return (await Promise.all(runs)).map((run) => JSON.parse(run.stdout).ips[0].address.split("/")[0]);
}

const programs = [OURS, ...upstreamPrograms().map(([, path]) => path)];
const PROGRAM_MIXES: readonly [string, (index: number) => string][] = [
  ["all ours", () => OURS],
  ["ours and the upstream programs that are installed", (index) => programs[index % programs.length] ?? OURS],
];

describe(`${PROCESSES} processes at once`, () => {
  test.each([...PROGRAM_MIXES])(
    "assign and release exactly the addresses of the range: %s",
    async (_, programFor) => {
      const dataDir = join(folder.path, crypto.randomUUID());
      for (const round of [0, 1]) {
        const given = await addressesOfAll((index) => programFor(index + round), dataDir);
        expect(new Set(given).size).toBe(PROCESSES);
        const expected = given.map((address, index): [string, string] => [address, `pod${index}\r\neth0`]);
        expect(reservationsIn(dataDir)).toEqual(Object.fromEntries(expected));

        const late = await callHostLocal({ program: OURS, command: "ADD", dataDir, containerId: "late", ipam: EXACT });
        expect(JSON.parse(late.stdout).code).toBe(102);

        const freed = everyContainer.map((containerId, index) =>
          callHostLocal({ program: programFor(index + 1), command: "DEL", dataDir, containerId, ipam: EXACT }),
        );
        expect((await Promise.all(freed)).filter(({ exitCode }) => exitCode !== 0)).toEqual([]);
        expect(reservationsIn(dataDir)).toEqual({});
      }
    },
    120_000,
  );
});

describe("processes that are killed", () => {
  test("assign no address twice, and lose none", async () => {
    const dataDir = join(folder.path, crypto.randomUUID());
    const holders = new Map<string, string>();
    let killed = 0;
    for (const [index, containerId] of everyContainer.entries()) {
      const call = { program: OURS, command: "ADD", dataDir, containerId, ipam: EXACT } as const;
      // Between the first microseconds of the process and a time long after its end.
      const address = await runUntilKilled(call, (index % 25) * 0.4);
      if (address === undefined) killed += 1;
      else holders.set(address, containerId);
      // A killed attachment is undone by the runtime's DEL, which may be killed as well.
      if (address === undefined) await runUntilKilled({ ...call, command: "DEL" }, (index % 10) * 0.8);
    }
    expect(killed).toBeGreaterThan(0);
    for (const [address, containerId] of holders) {
      expect(reservationsIn(dataDir)[address]).toBe(`${containerId}\r\neth0`);
    }
    // Whatever the killed processes left: after a GC with the valid attachments, every other address is free again.
    const valid = [...holders.values()].map((containerID) => ({ containerID, ifname: "eth0" }));
    const config = { "cni.dev/valid-attachments": valid };
    await callHostLocal({ program: OURS, command: "GC", dataDir, cniVersion: "1.1.0", ipam: EXACT, config });
    expect(new Set(Object.keys(reservationsIn(dataDir)))).toEqual(new Set(holders.keys()));
    for (let left = holders.size; left < PROCESSES; left += 1) {
      const run = await callHostLocal({
        program: OURS,
        command: "ADD",
        dataDir,
        containerId: `new${left}`,
        ipam: EXACT,
      });
      expect(run.exitCode).toBe(0);
    }
  }, 120_000);
});

/** The address in its result, or `undefined` if it was killed before it printed one. */
async function runUntilKilled(call: HostLocalCall, milliseconds: number): Promise<string | undefined> {
  const stdin = new TextEncoder().encode(JSON.stringify(configOf(call)));
  const child = Bun.spawn([call.program], { env: environmentOf(call), stdin, stdout: "pipe", stderr: "ignore" });
  const output = new Response(child.stdout).text();
  await Promise.race([child.exited, Bun.sleep(milliseconds)]);
  child.kill("SIGKILL");
  await child.exited;
  const text = await output;
  return child.exitCode === 0 && text !== "" ? JSON.parse(text).ips[0].address.split("/")[0] : undefined;
}
