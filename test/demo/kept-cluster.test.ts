/** `make cluster` and `make cluster-down` as users run them: what is printed is typed in other shells, after the one that started it has ended. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { knownProcess } from "../../scripts/cluster/state.ts";
import { bareClusterProblem } from "../support/bare-cluster.ts";
import { sweepCgroups } from "../support/cgroups.ts";
import { sweepDaemons } from "../support/daemon.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { sweepDirectories, temporaryDirectory } from "../support/temporary-directory.ts";

// A cluster that a person keeps in this clone goes on.
const parent = temporaryDirectory("cluster");
afterAll(() => parent.remove());

const CLUSTER = [process.execPath, join(import.meta.dir, "../../scripts/cluster.ts")];
const problem = bareClusterProblem();
const LIMIT = 300_000;

async function runCluster(folder: string, ...args: readonly string[]) {
  const child = Bun.spawn([...CLUSTER, ...args], {
    env: { ...process.env, CLUSTER_FOLDER: folder },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

/** In a shell of its own, with nothing of the one that started the cluster. */
async function type(script: string) {
  const shell = Bun.spawn(["setsid", "bash", "-c", script], {
    cwd: "/",
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(shell.stdout).text(),
    new Response(shell.stderr).text(),
    shell.exited,
  ]);
  return { code, stdout, stderr };
}

/** The lines that can be typed as they are. */
function printedLines(stdout: string): string {
  const [, lines = ""] = /In any shell of root:\n\n((?: {2}.*\n)+)/.exec(stdout) ?? [];
  return lines;
}

/** What CONTRIBUTING.md types in the cluster. */
function linesOfPage(): string {
  const page = readFileSync(join(import.meta.dir, "../../CONTRIBUTING.md"), "utf8");
  const [, script = ""] = /^make cluster .*\nexport PATH.*\n([\s\S]*?)^make cluster /m.exec(page) ?? [];
  expect(script).toContain("node-1");
  return script;
}

interface State {
  readonly keeper: { readonly pid: number };
}

function keeperOf(folder: string): number {
  const state: State = JSON.parse(readFileSync(join(folder, "state.json"), "utf8"));
  return state.keeper.pid;
}

function leftOf(folder: string, keeper: number): readonly string[] {
  const commands = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && existsSync(`/proc/${name}/cmdline`))
    .map((pid) => readCommand(pid))
    .filter((command) => command.includes(folder));
  const cgroups = [...new Bun.Glob("**/vt-*").scanSync({ cwd: "/sys/fs/cgroup", onlyFiles: false })];
  return [
    ...commands,
    ...cgroups.filter((name) => name.includes(`vt-${keeper}in`)),
    ...(existsSync(folder) ? [folder] : []),
  ];
}

function readCommand(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

describe("make cluster", () => {
  testNeeding(problem)(
    "keeps a cluster that other shells use as it prints, and that the next make cluster finds; make cluster-down leaves nothing",
    async () => {
      const folder = join(parent.path, "kept");
      const started = await runCluster(folder, "up", "--datastore", "", "--nodes", "");
      expect(started).toMatchObject({ code: 0, stderr: "" });
      const lines = printedLines(started.stdout);
      const keeper = keeperOf(folder);

      const typed = await type(`set -e\n${lines}`);
      expect(typed).toMatchObject({ code: 0 });
      expect(typed.stdout).toMatch(/^vendor-system +vendor-node-/m);
      expect(typed.stdout).toMatch(/^node-2 +yes +ready/m);
      expect(typed.stdout).toContain("dev eth0");
      expect(typed.stdout).toContain("pod/web created");

      const [path = "", run = ""] = [/export PATH.*/, /kubectl run.*/].map((line) => line.exec(lines)?.[0] ?? "");
      const elsewhere = run.replace("run web", `run other --overrides='{"spec":{"nodeName":"'$node'"}}'`);
      const talk = `${path}; node=$(kubectl get pod web --output=jsonpath={.spec.nodeName})
[ $node = node-1 ] && node=node-2 || node=node-1
${elsewhere}; kubectl wait pod --all --for=condition=Ready --timeout=60s
address=$(kubectl get pod web --output=jsonpath={.status.podIP})
for try in 1 2 3 4 5 6 7 8 9 10; do kubectl exec other -- sh -c "printf 'GET /hostname HTTP/1.0\\r\\n\\r\\n' | nc -w 2 $address 80" && break; sleep 1; done`;
      expect((await type(talk)).stdout).toEndWith("\r\n\r\nweb");

      expect(await type(`set -e\n${path}\n${linesOfPage()}`)).toMatchObject({ code: 0, stderr: "" });

      sweepCgroups();
      sweepDaemons("kube");
      sweepDirectories();
      const again = await runCluster(folder, "up", "--datastore", "kubernetes", "--nodes", "2");
      expect(again).toMatchObject({ code: 0, stderr: "" });
      expect(again.stdout).toStartWith(
        'The cluster runs already: 2 nodes, datastore "kubernetes"\nIt runs the programs',
      );
      expect(await runCluster(folder, "up", "--nodes", "3")).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("run make cluster-down first"),
      });

      expect(await runCluster(folder, "down")).toMatchObject({ code: 0, stderr: "" });
      expect(leftOf(folder, keeper)).toEqual([]);
      expect((await runCluster(folder, "down")).stdout).toBe("There is no cluster of this clone\n");
    },
    LIMIT,
  );

  testNeeding(problem, proofSize({ everyDay: "only in `make soak`", soak: undefined }))(
    "does the same on etcd, puts another build onto the nodes, and after parts of it were killed nothing is left or in the way",
    async () => {
      const folder = join(parent.path, "killed");
      const start = () => runCluster(folder, "up", "--datastore", "etcd", "--nodes", "1");
      const { stdout } = await start();
      const lines = printedLines(stdout);
      expect(await type(`set -e\n${lines}`)).toMatchObject({ code: 0 });
      const killed = keeperOf(folder);

      // As if the nodes had another build.
      const state = readFileSync(join(folder, "state.json"), "utf8");
      writeFileSync(join(folder, "state.json"), state.replace(/"image": ".*"/, '"image": "other"'));
      const updated = await start();
      expect(updated).toMatchObject({ code: 0, stderr: "" });
      expect(updated.stdout).toContain("✓ The image on node-1");
      expect(updated.stdout).toContain("\nIt runs the programs of this build now.\n");
      expect(await type(lines.replace(/.*kubectl run.*/, ""))).toMatchObject({ code: 0 });

      process.kill(killed, "SIGKILL");
      await pollUntil(
        async () => (await type(lines)).stderr.includes("does not run any more: make cluster"),
        "its end",
      );
      expect(await start()).toMatchObject({ code: 0, stderr: "" });
      const keeper = keeperOf(folder);
      expect(leftOf(folder, killed).filter((left) => left.includes(`vt-${killed}in`))).toEqual([]);

      await type(
        `${/export PATH.*/.exec(lines)?.[0]}; node-1 sh -c 'kill -9 1; kill -9 -1'; pkill -9 -f "^\\S*etcd .*${folder}/"`,
      );
      expect(await runCluster(folder, "down")).toMatchObject({ code: 0, stderr: "" });
      expect(leftOf(folder, keeper)).toEqual([]);
    },
    LIMIT,
  );

  test.each([
    ["--nodes", "0", "use a number from 1 to 5"],
    ["--nodes", "6", "use a number from 1 to 5"],
    ["--nodes", "1.5", "use a number from 1 to 5"],
    ["--nodes", "-1", "use a number from 1 to 5"],
    ["--nodes", "many", "use a number from 1 to 5"],
    ["--datastore", "consul", "use kubernetes or etcd"],
  ])("refuses %s %p: %s", async (option, value, fix) => {
    const { code, stderr } = await runCluster(join(parent.path, "refused"), "up", `${option}=${value}`);

    expect(code).toBe(2);
    expect(stderr).toContain(`"${value}"; ${fix}\n`);
  });

  testNeeding(root)("ends no other process that has the number of a cluster of an earlier boot", async () => {
    const folder = join(parent.path, "earlier");
    const child = Bun.spawn(["sleep", "60"]);
    const keeper = { ...knownProcess(child.pid), boot: "00000000-0000-4000-8000-000000000000" };
    mkdirSync(folder);
    writeFileSync(join(folder, "state.json"), JSON.stringify({ keeper, isReady: true, nodes: [] }));

    const { code, stdout } = await runCluster(folder, "down");

    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: "The cluster had ended already; what was left of it was removed\n",
    });
    expect([existsSync(folder), child.exitCode, child.signalCode]).toEqual([false, null, null]);
    child.kill();
  });

  testNeeding(root, program("setpriv"))("tells a user who is not root what is missing", () => {
    const reads = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"];
    const nobody = ["setpriv", "--reuid=65534", "--clear-groups", ...reads, "--"];
    for (const command of ["up", "down"]) {
      const { exitCode, stderr } = Bun.spawnSync([...nobody, ...CLUSTER, command], { stdin: "ignore" });

      expect(exitCode).toBe(1);
      expect(stderr.toString()).toContain("root");
    }
  });
});
