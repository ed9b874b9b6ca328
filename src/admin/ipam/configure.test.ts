import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../test/support/admin-context.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { IPAM_CONFIGURATION_KEY } from "../../model/keys.ts";
import { EXIT_FAILED, EXIT_USAGE } from "../main/command.ts";

let store = openMemory();
beforeEach(() => {
  store = openMemory();
});

const ctl = (words: string): Promise<AdminRun> => runInside(words.split(" "), { store });
const json = async (words: string): Promise<object> => JSON.parse((await ctl(`${words} -o json`)).stdout);

describe("ipam configure", () => {
  test("sets what is given and keeps the rest", async () => {
    expect(await json("ipam show --show-configuration")).toMatchObject({ strictAffinity: false, maxBlocksPerHost: 0 });
    await ctl("ipam configure --strict-affinity true");
    await ctl("ipam configure --max-blocks-per-host 4");

    expect(await json("ipam show --show-configuration")).toEqual({
      strictAffinity: true,
      autoAllocateBlocks: true,
      maxBlocksPerHost: 4,
    });
    expect((await ctl("ipam configure --max-blocks-per-host -1")).code).toBe(EXIT_FAILED);
    expect((await ctl("ipam configure --strict-affinity yes")).code).toBe(EXIT_USAGE);
    expect((await ctl("ipam configure")).code).toBe(EXIT_USAGE);
  });

  test("sets the rest of released addresses, and refuses more than a day", async () => {
    expect(await json("ipam configure --cooldown-seconds 600")).toMatchObject({ cooldownSeconds: 600 });
    expect((await ctl("ipam configure --cooldown-seconds ten")).code).toBe(EXIT_USAGE);
    const { code, stderr } = await ctl("ipam configure --cooldown-seconds 86401");
    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("spec.cooldownSeconds");
    expect(stderr).toContain("86401");
    expect(stderr).toContain("use 0 to 86400 seconds");
    expect(await json("ipam configure --longest-keep-for 72h")).toMatchObject({ longestKeepFor: "72h" });
    expect((await ctl("ipam configure --longest-keep-for long")).stderr).toContain("spec.longestKeepFor");
    expect(await json("ipam show --show-configuration")).toMatchObject({ cooldownSeconds: 600, longestKeepFor: "72h" });
  });

  test.each(["x", "1e2", "0x10", "2.5"])("rejects %p as a number of blocks", async (text) => {
    const { code, stderr } = await runInside(["ipam", "configure", "--max-blocks-per-host", text], { store });

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain(`"${text}"`);
  });

  test("keeps settings of a newer release", async () => {
    const value = JSON.stringify({ auto_allocate_blocks: true, kubevirt: "on" });
    await store.commit([{ kind: "put", key: IPAM_CONFIGURATION_KEY, value }]);
    await ctl("ipam configure --strict-affinity true");

    const { answers } = await store.read([{ kind: "key", key: IPAM_CONFIGURATION_KEY }]);
    expect(JSON.parse(answers[0]?.[0]?.value ?? "")).toMatchObject({ strict_affinity: true, kubevirt: "on" });
  });
});
