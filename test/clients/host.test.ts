import { describe, expect } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { cgroupName, makeCgroups, removeCgroups } from "../support/cgroups.ts";
import { hasEtcd } from "../support/etcd.ts";
import { startEtcdOnHost } from "../support/etcd-on-host.ts";
import { hostProblem, openHost } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";

const ROOT = "/sys/fs/cgroup";
const testHost = testNeeding(hostProblem());

describe("openHost()", () => {
  testHost("is isolated from the real host", async () => {
    await using host = await openHost();
    await host.must(["ip", "link", "add", "vt-inside", "type", "veth", "peer", "name", "vt-peer"]);
    host.writeFile("/etc/vt-inside", "x");

    expect(await host.must(["cat", "/etc/vt-inside"])).toBe("x");
    expect(existsSync("/etc/vt-inside")).toBe(false);
    expect(existsSync("/sys/class/net/vt-inside")).toBe(false);
  });

  testHost("has the files that runtimes copy into pods, although the machine lacks them", async () => {
    const source = `
      import { openHost } from ${JSON.stringify(join(import.meta.dir, "../support/host.ts"))};
      await using host = await openHost();
      console.log(await host.must(["cat", "/etc/hosts", "/etc/resolv.conf"]));`;
    const without = `set -e
mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work
mount -t overlay none -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work /etc
rm -f /etc/hosts /etc/resolv.conf && ln -s /run/none/resolv.conf /etc/resolv.conf
exec "$@"`;
    const enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c", without, "sh"];
    const owner = Bun.spawn([...enter, process.execPath, "-e", source], { stdin: "ignore", stdout: "pipe" });

    expect(await new Response(owner.stdout).text()).toContain("127.0.0.1 localhost\n");
    expect(await owner.exited).toBe(0);
  });

  testHost("disappears with the test, however that ends", async () => {
    const source = `
      import { openHost } from ${JSON.stringify(join(import.meta.dir, "../support/host.ts"))};
      const host = await openHost();
      host.start(["sleep", "1000"], "sleep.log");
      console.log(host.netns.split("/")[2]);
      await new Promise(() => {});`;
    const owner = Bun.spawn([process.execPath, "-e", source], { stdin: "ignore", stdout: "pipe" });
    const { value } = await owner.stdout.getReader().read();
    const init = new TextDecoder().decode(value).trim();
    expect(existsSync(`/proc/${init}`)).toBe(true);

    owner.kill("SIGKILL");
    await pollUntil(() => !existsSync(`/proc/${init}`), "the host's end");
  });
});

describe("startEtcdOnHost()", () => {
  const etcd = hasEtcd ? undefined : "needs the program etcd";

  testNeeding(
    hostProblem(),
    etcd,
    program("busybox"),
  )("needs no /etc/hosts, which a bare Debian lacks", async () => {
    await using host = await openHost();
    await host.must(["rm", "-f", "/etc/hosts"]);

    expect(await startEtcdOnHost(host)).toStartWith("http://127.0.0.1:");
  });
});

describe("sweepCgroups()", () => {
  const cgroupsOf = (name: string) => [".", ...readdirSync(ROOT)].filter((each) => existsSync(join(ROOT, each, name)));
  const sweep = (enter: readonly string[] = []) => {
    const module = JSON.stringify(join(import.meta.dir, "../support/cgroups.ts"));
    const source = `import { sweepCgroups } from ${module}; sweepCgroups();`;
    expect(Bun.spawnSync([...enter, process.execPath, "-e", source]).exitCode).toBe(0);
  };

  testHost("removes those of processes that have ended, and none of others that it cannot see", () => {
    const ended = Bun.spawnSync(["true"]).pid;
    const [own, left] = [cgroupName(process.pid, 999), cgroupName(ended, 999)];
    for (const name of [own, left]) makeCgroups(name);
    const before = cgroupsOf(own);
    expect(before).not.toEqual([]);

    sweep(["unshare", "--pid", "--fork", "--mount-proc"]);
    expect([cgroupsOf(own), cgroupsOf(left)]).toEqual([before, before]);
    sweep();
    expect([cgroupsOf(own), cgroupsOf(left)]).toEqual([before, []]);
    removeCgroups(own);
  });
});
