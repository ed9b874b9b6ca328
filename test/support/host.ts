/**
 * A private "host" for container runtimes and plugins under test.
 *
 *   test ── stdin pipe ──> PID 1 of the host ──> containerd, conmon, containers …
 *                          own network, mount and process namespace, and host name
 *
 * The directories that runtimes hard-code (/run, /opt, /etc, /var/lib, /var/log) are
 * private to it. It ends when the pipe closes, so also if the test is killed, and
 * the kernel removes everything inside: processes, links, mounts and files.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { cgroupName, removeCgroups, sweepCgroups } from "./cgroups.ts";

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly stdin?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly limitMilliseconds?: number;
}

export interface Host extends AsyncDisposable {
  /** Unique and recognisable: `vt-<process of the test>in<its PID namespace>-<n>`; also the name of its cgroups. */
  readonly name: string;
  /** Its own directory in memory, with the same path inside. */
  readonly directory: string;
  /** The path of its network namespace, seen from outside. */
  readonly netns: string;
  /** Prefix of a command that runs in the host. */
  readonly enter: readonly string[];
  /** The path of a file of the host, seen from outside. */
  view(path: string): string;
  writeFile(path: string, content: string): void;
  /** Runs a command in the host until it exits. */
  run(command: readonly string[], options?: RunOptions): Promise<Finished>;
  /** The same, but throws if the exit code is not 0; returns what it printed. */
  must(command: readonly string[], options?: RunOptions): Promise<string>;
  /** Starts a daemon; it ends with the host. Its output goes to `<directory>/<log>`. */
  start(command: readonly string[], log: string): Bun.Subprocess;
}

const DIRECTORY = "/run/vt";

/** Runtimes copy hosts and resolv.conf into pods: a bare root may lack them, and the latter may be a link into /run. */
const INIT = `
set -e
exec 3<&0
for folder in /run /opt /var/lib /var/log; do mount -t tmpfs vt $folder; done
mkdir -p ${DIRECTORY} /run/netns /run/lock /run/etc/upper /run/etc/work
mount -t overlay vt -o lowerdir=/etc,upperdir=/run/etc/upper,workdir=/run/etc/work /etc
rm -rf /etc/cni; mkdir -p /etc/cni/net.d /opt/cni/bin
if [ ! -e /etc/hosts ]; then printf '127.0.0.1 localhost\\n::1 localhost\\n' >/etc/hosts; fi
if [ ! -e /etc/resolv.conf ]; then rm -f /etc/resolv.conf; : >/etc/resolv.conf; fi
mount --make-rshared /
if [ -n "$0" ]; then echo "$0" > /proc/sys/kernel/hostname; fi
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
cat <&3 >/dev/null &
echo ready
wait $!
`;

let opened = 0;

/** Why a private host cannot be created here; undefined if it can. */
export function hostProblem(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root";
  const missing = ["unshare", "nsenter", "ip"].filter((program) => Bun.which(program) === null);
  return missing.length === 0 ? undefined : `needs ${missing.join(", ")}`;
}

/** `hostName`: otherwise that of the machine. */
export async function openHost({ hostName = "" }: { readonly hostName?: string } = {}): Promise<Host> {
  sweepCgroups();
  opened += 1;
  const name = cgroupName(process.pid, opened);
  const holder = Bun.spawn(
    [
      "unshare",
      "--net",
      "--mount",
      "--propagation",
      "private",
      "--uts",
      "--pid",
      "--fork",
      "--kill-child",
      "--mount-proc",
    ].concat(["sh", "-c", INIT, hostName]),
    { stdin: "pipe", stdout: "pipe", stderr: "pipe" },
  );
  const reader = holder.stdout.getReader();
  const { value } = await reader.read();
  if (new TextDecoder().decode(value) !== "ready\n") {
    throw new Error(`Cannot create a private host: ${await new Response(holder.stderr).text()}`);
  }
  const pid = Number(readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, "utf8").trim());
  return hostOf(name, pid, async () => {
    holder.stdin.end();
    await holder.exited;
    removeCgroups(name);
  });
}

function hostOf(name: string, pid: number, close: () => Promise<void>): Host {
  const enter = ["nsenter", `--target=${pid}`, "--net", "--mount", "--uts", "--pid", "--"];
  const view = (path: string) => `/proc/${pid}/root${path}`;
  const run = async (command: readonly string[], options: RunOptions = {}): Promise<Finished> => {
    const limit = String((options.limitMilliseconds ?? 30_000) / 1000);
    const child = Bun.spawn([...enter, "timeout", "--kill-after=1", limit, ...command], {
      stdin: options.stdin === undefined ? "ignore" : new Blob([options.stdin]),
      stdout: "pipe",
      stderr: "pipe",
      env: environmentOf(options),
    });
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { code, stdout, stderr };
  };

  return {
    name,
    directory: DIRECTORY,
    netns: `/proc/${pid}/ns/net`,
    enter,
    view,
    writeFile(path, content) {
      mkdirSync(dirname(view(path)), { recursive: true });
      writeFileSync(view(path), content);
    },
    run,
    async must(command, options) {
      const { code, stdout, stderr } = await run(command, options);
      if (code !== 0) throw new Error(`"${command.join(" ")}" ended with ${code}: ${stdout}${stderr}`);
      return stdout;
    },
    start(command, log) {
      const output = Bun.file(view(`${DIRECTORY}/${log}`));
      return Bun.spawn([...enter, ...command], {
        stdin: "ignore",
        stdout: output,
        stderr: output,
        env: environmentOf({}),
      });
    },
    [Symbol.asyncDispose]: close,
  };
}

function environmentOf(options: RunOptions): Record<string, string> {
  const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  return { PATH: path, HOME: "/root", ...options.environment };
}
