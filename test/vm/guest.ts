/**
 * A virtual machine with a kernel of Debian, by qemu's own translation: no hardware help is needed, and everything takes
 * many times as long.
 *
 *   initramfs: busybox, the modules that reach the disks ──> /  = overlay of this machine's files (9p, read-only) and memory
 *                                                            /run/guest = a directory of this machine, for commands and their outcome
 *
 * The programs, the repository and the built product are those of this machine, at the same paths; what the guest writes
 * is gone with it, except on its disk. It ends with the test, also if the test is killed.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { part } from "../parts/build.ts";
import type { PartName } from "../parts/table.ts";
import type { Finished, RunOptions } from "../support/host.ts";
import { pollUntil } from "../support/poll.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

export const KERNELS = ["linux-6.1", "linux-6.12"] as const satisfies readonly PartName[];
export type Kernel = (typeof KERNELS)[number];

export interface GuestPlan {
  readonly kernel: Kernel;
  /** The file of a raw disk, which the guest has as /dev/vda. */
  readonly disk?: string;
  /** The two ends of a network cable: paths of sockets. The guest has it as its only Ethernet interface. */
  readonly cable?: { readonly own: string; readonly other: string };
  /** A network of the guest's next Ethernet interface, in which `x.y.z.2` is this machine: what listens on its loopback replies there. */
  readonly machineNetwork?: `${string}.0/24`;
  readonly memoryMegabytes?: number;
}

export interface Guest extends AsyncDisposable {
  /** Runs a command in the guest until it exits. */
  run(command: readonly string[], options?: RunOptions): Promise<Finished>;
  /** The same, but throws if the exit code is not 0; returns what it printed. */
  must(command: readonly string[], options?: RunOptions): Promise<string>;
  /** Starts a command that goes on; it ends with the guest. Its output goes to `/run/guest/<log>`. */
  start(command: readonly string[], log: string): Promise<void>;
  /** Writes the caches to the disk and switches the guest off. */
  shutDown(): Promise<void>;
  /** What was in the memory of the guest is lost. */
  losePower(): Promise<void>;
  /** What the kernel and the first processes printed. */
  console(): string;
  /** The path of a file of `/run/guest`, on this machine. */
  view(name: string): string;
}

const BOOT_MILLISECONDS = 240_000;
const COMMAND_MILLISECONDS = 240_000;
const MODULES = ["virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_blk", "virtio_net", "virtio_rng", "ext4"];

/** Why there can be no guest here; undefined if there can be one. Gets the kernel if necessary. */
export async function guestProblem(kernel: Kernel): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return "needs root";
  const programs = ["qemu-system-x86_64", "busybox", "cpio", "xz", "modprobe"];
  const missing = programs.filter((program) => Bun.which(program) === null);
  if (missing.length > 0) return `needs ${missing.join(", ")}`;
  const built = await part(kernel);
  return "missing" in built ? built.missing : undefined;
}

const INIT = `#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read module; do insmod "/modules/$module"; done </modules/order
options=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o "$options,ro,cache=loose" machine /machine
mount -t tmpfs -o size=80% memory /memory
mkdir /memory/upper /memory/work
mount -t overlay guest -o lowerdir=/machine,upperdir=/memory/upper,workdir=/memory/work /root
for each in proc sys dev; do mount --move "/$each" "/root/$each"; done
mount -t tmpfs guest /root/run
mkdir /root/run/guest
mount -t 9p -o "$options" control /root/run/guest
exec switch_root /root /bin/sh /run/guest/serve`;

const SERVE = `
export HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd /run/guest
read kernel <kernel
mkdir -p /usr/lib/modules /dev/shm /dev/pts /run/lock
mount --bind "$kernel"/lib/modules /usr/lib/modules
[ -e /lib/modules ] || ln -s /usr/lib/modules /lib/modules
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t tmpfs memory /dev/shm
mount -t devpts devpts /dev/pts
ip link set lo up
next=1
: >ready
while :; do
  if [ -e "$next".command ]; then
    { sh "$next".command <"$next".stdin >"$next".stdout 2>"$next".stderr; echo $? >"$next".ended; mv "$next".ended "$next".code; } &
    next=$((next + 1))
  else
    sleep 0.1
  fi
done`;

export async function startGuest(plan: GuestPlan): Promise<Guest> {
  const kernel = await part(plan.kernel);
  if ("missing" in kernel) throw new Error(`Cannot start a guest: ${kernel.missing}`);
  const folder = temporaryDirectory("guest");
  const view = (name: string) => join(folder.path, "control", name);
  mkdirSync(join(folder.path, "control"));
  writeFileSync(view("serve"), SERVE);
  writeFileSync(view("kernel"), `${kernel.path}\n`);
  await packInitramfs(kernel.path, folder.path);
  const log = join(folder.path, "console");
  const machine = Bun.spawn(["setpriv", "--pdeathsig", "KILL", ...qemuCommand(plan, kernel.path, folder.path)], {
    stdin: "ignore",
    stdout: Bun.file(log),
    stderr: Bun.file(join(folder.path, "qemu")),
  });
  const printed = (name: string) =>
    existsSync(join(folder.path, name)) ? readFileSync(join(folder.path, name), "utf8") : "";
  const whatItSaid = () => `${printed("qemu")}${printed("console")}`;
  const failed = (what: string) => new Error(`${what}; the guest printed:\n${whatItSaid().slice(-4_000)}`);
  const until = async (file: string, what: string, limitMilliseconds: number) => {
    const isThere = () => existsSync(view(file)) || machine.exitCode !== null || machine.signalCode !== null;
    await pollUntil(isThere, what, limitMilliseconds).catch(() => machine.kill("SIGKILL"));
    if (!existsSync(view(file))) throw failed(`Waited in vain for ${what}`);
  };
  const end = async () => {
    machine.kill("SIGKILL");
    await machine.exited;
  };

  await until("ready", "the guest to boot", BOOT_MILLISECONDS);
  let commands = 0;
  const send = (command: readonly string[], { stdin = "", environment = {} }: RunOptions): number => {
    commands += 1;
    writeFileSync(view(`${commands}.stdin`), stdin);
    const exported = Object.entries(environment).map(([name, value]) => `export ${name}=${quote(value)}\n`);
    writeFileSync(view("unfinished"), `${exported.join("")}${command.map(quote).join(" ")}\n`);
    renameSync(view("unfinished"), view(`${commands}.command`));
    return commands;
  };
  const run: Guest["run"] = async (command, options = {}) => {
    const own = send(command, options);
    await until(`${own}.code`, `"${command.join(" ")}"`, options.limitMilliseconds ?? COMMAND_MILLISECONDS);
    const read = (name: string) => readFileSync(view(`${own}.${name}`), "utf8");
    return { code: Number(read("code")), stdout: read("stdout"), stderr: read("stderr") };
  };

  return {
    run,
    async must(command, options) {
      const { code, stdout, stderr } = await run(command, options);
      if (code !== 0) throw failed(`"${command.join(" ")}" ended with ${code}: ${stdout}${stderr}`);
      return stdout;
    },
    async start(command, file) {
      const words = command.map(quote).join(" ");
      await run(["sh", "-c", `exec ${words} >/run/guest/${file} 2>&1 &`]);
    },
    async shutDown() {
      send(["sh", "-c", "umount -a -t ext4; sync; echo o >/proc/sysrq-trigger"], {});
      await Promise.race([machine.exited, Bun.sleep(COMMAND_MILLISECONDS)]);
      await end();
    },
    losePower: end,
    console: whatItSaid,
    view,
    async [Symbol.asyncDispose]() {
      await end();
      folder.remove();
    },
  };
}

function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

const PACK = `
  set -e
  cd "$folder"
  mkdir -p root/bin root/modules root/proc root/sys root/dev root/machine root/memory root/root
  cp "$busybox" root/bin/busybox
  printf '%s\\n' "$init" >root/init
  chmod 755 root/init
  for release in "$kernel"/lib/modules/*; do release="\${release##*/}"; done
  for module; do
    modprobe -d "$kernel" -S "$release" --show-depends "$module" | while read verb file rest; do
      [ "$verb" = insmod ] || continue
      name="\${file##*/}"
      [ ! -e root/modules/"\${name%.xz}" ] || continue
      if [ "$name" = "\${name%.xz}" ]; then cp "$file" root/modules/"$name"; else xz -dc "$file" >root/modules/"\${name%.xz}"; fi
      echo "\${name%.xz}" >>root/modules/order
    done
  done
  cd root
  find . | cpio --quiet -o -H newc >../initramfs`;

async function packInitramfs(kernel: string, folder: string): Promise<void> {
  const busybox = Bun.which("busybox") ?? "";
  const child = Bun.spawn(["sh", "-c", PACK, "sh", ...MODULES], {
    env: { ...process.env, folder, kernel, busybox, init: INIT },
    stdin: "ignore",
    stderr: "pipe",
  });
  const [complaints, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code !== 0) throw new Error(`Cannot pack the initramfs of a guest: ${complaints}`);
}

/** A card that the firmware would ask for a system delays each boot. */
const WITHOUT_BOOT = "romfile=";

function qemuCommand(plan: GuestPlan, kernel: string, folder: string): readonly string[] {
  const share = (tag: string, path: string, more: string) => [
    "-virtfs",
    `local,path=${path},mount_tag=${tag},security_model=none,multidevs=remap${more}`,
  ];
  return [
    ...["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", String(plan.memoryMegabytes ?? 3072)],
    // With a cable there are two guests at once. One processor for each costs less of ours: nothing in it must be atomic.
    ...["-smp", plan.cable === undefined ? "2" : "1"],
    ...["-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio"],
    ...["-kernel", join(kernel, "vmlinuz"), "-initrd", join(folder, "initramfs")],
    // On a busy machine the kernel would find its timer too slow, and give up.
    ...["-append", "console=ttyS0 quiet panic=-1 random.trust_cpu=on mitigations=off no_timer_check"],
    ...[
      "-device",
      "virtio-rng-pci",
      ...share("machine", "/", ",readonly=on"),
      ...share("control", join(folder, "control"), ""),
    ],
    // What the guest has written outlives qemu in this machine's memory: nothing must reach this machine's disk.
    ...(plan.disk === undefined ? [] : ["-drive", `file=${plan.disk},format=raw,if=virtio,cache=unsafe`]),
    ...(plan.cable === undefined ? [] : cableOptions(plan.cable)),
    ...(plan.machineNetwork === undefined ? [] : ["-netdev", `user,id=machine,net=${plan.machineNetwork}`]),
    ...(plan.machineNetwork === undefined ? [] : ["-device", `virtio-net-pci,netdev=machine,${WITHOUT_BOOT}`]),
  ];
}

function cableOptions({ own, other }: NonNullable<GuestPlan["cable"]>): readonly string[] {
  // The other end exists from the other's start on; its address is also that of the card.
  const end = `local.type=unix,local.path=${own},remote.type=unix,remote.path=${other}`;
  const last = new Bun.CryptoHasher("sha256").update(own).digest("hex").slice(0, 2);
  const card = `virtio-net-pci,netdev=cable,mac=02:00:00:00:00:${last},${WITHOUT_BOOT}`;
  return ["-netdev", `dgram,id=cable,${end}`, "-device", card];
}
