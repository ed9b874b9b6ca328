/** Tests of what the product asks of the kernel, as they are, with other kernels: each file runs in a guest. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { program, testNeeding } from "../support/needs.ts";
import { proofSize } from "../support/proof-size.ts";
import { type Guest, guestProblem, KERNELS, type Kernel, startGuest } from "./guest.ts";

const FILES = [
  "test/linux/rtnetlink.test.ts",
  "test/linux/nftables.test.ts",
  "test/linux/log-group.test.ts",
  "test/linux/tunnel-devices.test.ts",
  "test/firewall/nat.test.ts",
  "test/policy/packets.test.ts",
];
const REPOSITORY = join(import.meta.dir, "../..");
const FILE_MILLISECONDS = 1_800_000;
/** Of one test in the guest. */
const LIMIT = "--timeout=600000";
/** There a packet that arrives can take longer than one that is dropped is waited for elsewhere. */
const PATIENCE = "PROOF_PATIENCE=10";

/** Nothing of it is in `make test`, which runs the files themselves. */
for (const kernel of proofSize<readonly Kernel[]>({ everyDay: [], soak: KERNELS })) {
  const needs = [await guestProblem(kernel), program("nft")];
  const test = testNeeding(...needs);

  describe(`with ${kernel}`, () => {
    const undo = new AsyncDisposableStack();
    let guest: Guest;
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      guest = undo.use(await startGuest({ kernel }));
    }, FILE_MILLISECONDS);
    afterAll(() => undo.disposeAsync());

    for (const file of FILES) {
      test(
        `${file} passes`,
        async () => {
          const command = ["env", "-C", REPOSITORY, "PROOF_SIZE=", PATIENCE, process.execPath, "test", LIMIT, file];
          const { code, stdout, stderr } = await guest.run(command, { limitMilliseconds: FILE_MILLISECONDS });
          const printed = `${stdout}${stderr}`;
          if (code !== 0) console.error(printed.replaceAll(/^\(pass\).*\n/gm, ""));
          expect({ code, failed: printed.match(/^\(fail\).*$/gm) }).toEqual({ code: 0, failed: null });
          // A guest has root and every program: what is skipped there is only what its kernel lacks.
          expect(Number(/^ *(\d+) pass$/m.exec(printed)?.[1])).toBeGreaterThan(0);
        },
        FILE_MILLISECONDS,
      );
    }
  });
}
