/**
 * The maintainer scripts of the Debian package, with every argument that dpkg gives them, run directly on a copy of this
 * host. package.test.ts runs whole removals by dpkg.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { controlFiles } from "../../scripts/deb/control.ts";
import { layoutOf } from "../../scripts/install/layout.ts";
import { hostPortsFolder } from "../../src/chained/portmap/record-file.ts";
import { agentLockPath } from "../../src/config/run-directory.ts";
import { identity } from "../../src/identity.ts";
import { ROUTE_PROTOCOL } from "../../src/linux/rtnetlink/route.ts";
import { birdFiles } from "../../src/routing/bird/bird-files.ts";
import { onCopyOfHost } from "../support/copy-of-host.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY } from "../support/network-under-test.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const { product, nodeAgent, stateDirectory, logDirectory, runDirectory, environmentPrefix, interfacePrefix } = identity;
const { natTable, hostPortTable, vxlanDevice } = identity;
const testScripts = testNeeding(root, program("ip"), program("nft"), program("flock"), program("setpriv"));

const directory = temporaryDirectory("maintainer-scripts");
const scripts: Record<string, string> = {};
beforeAll(() => {
  const layout = layoutOf({ prefix: "/usr", cniBinDirectory: BIN_DIRECTORY });
  const request = { names: identity, version: "1.2.3", architecture: "all", maintainer: "x", layout, size: 0 };
  for (const [name, content] of Object.entries(controlFiles(request))) {
    const file = join(directory.path, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    scripts[name] = file;
  }
});
afterAll(() => directory.remove());

const LOCK = agentLockPath({});
const BIRD = birdFiles(runDirectory);
const ENABLED = `/etc/systemd/system/multi-user.target.wants/${nodeAgent}.service`;
const LINK = `${interfacePrefix}0123456789`;
const RECORD = join(hostPortsFolder(runDirectory), "c".repeat(32));

/**
 * Shell functions: `network` makes what the network consists of; `state` prints it; `program` installs the built programs,
 * `speaker` one that only says that it was called.
 */
const COMMANDS = `
export DPKG_MAINTSCRIPT_PACKAGE=${product}
network() {
  mkdir -p ${runDirectory}/agent ${BIRD.directory} ${stateDirectory} ${logDirectory}/cni
  : >${LOCK}
  echo data >${stateDirectory}/datastore.sqlite
  echo line >${logDirectory}/cni/cni.log
  nft add table inet ${natTable}
  nft add table ip ${hostPortTable}
  ip route add blackhole 10.66.0.0/26 proto ${ROUTE_PROTOCOL.own}
  ip route add 10.67.0.0/26 dev lo proto ${ROUTE_PROTOCOL.bird}
  ip -6 route add blackhole fd66::/64 proto ${ROUTE_PROTOCOL.own}
  ip route add 10.68.0.0/26 dev lo proto static
}
state() {
  nft list tables
  ip route
  ip -6 route show type blackhole
  find ${runDirectory}/ ${stateDirectory} ${logDirectory} 2>/dev/null | sort
}
program() { mkdir -p ${dirname(BIN_DIRECTORY)}; ln -s ${dirname(builtProgram())} ${BIN_DIRECTORY}; }
speaker() {
  mkdir -p ${BIN_DIRECTORY}
  echo '#!/bin/sh' >${BIN_DIRECTORY}/${nodeAgent}
  echo 'echo "called with $* and run directory ($${environmentPrefix}RUN_DIRECTORY)"' >>${BIN_DIRECTORY}/${nodeAgent}
  chmod 755 ${BIN_DIRECTORY}/${nodeAgent}
}
prerm() { sh /packages/prerm "$@"; }
postrm() { sh /packages/postrm "$@"; }
same() { state | diff /tmp/state -; }
`;

function onCopy(script: string): string {
  const { code, printed } = onCopyOfHost(`${COMMANDS}${script}`, scripts);
  expect({ code, printed }).toMatchObject({ code: 0 });
  return printed;
}

const NOT_REMOVALS = {
  preinst: ["upgrade 1", "abort-upgrade 2"],
  postinst: [
    "abort-upgrade 2",
    "abort-remove",
    "abort-remove in-favour other 1",
    "abort-deconfigure in-favour other 1",
  ],
  prerm: ["upgrade 2", "failed-upgrade 1", "deconfigure in-favour other 1", "deconfigure in-favour a 1 removing b 2"],
  postrm: ["upgrade 2", "failed-upgrade 1", "abort-install", "abort-install 1", "abort-upgrade 1", "disappear other 1"],
};

describe("maintainer scripts", () => {
  testScripts("change nothing of the network if the package is not removed", () => {
    const calls = Object.entries(NOT_REMOVALS).flatMap(([name, all]) => all.map((args) => `${name} ${args}`));
    const printed = onCopy(`
network
speaker
state >/tmp/state
while read -r script arguments; do
  sh /packages/$script $arguments || { echo "$script $arguments failed"; exit 1; }
  same
done <<end
${calls.join("\n")}
end
`);

    expect(printed).not.toContain("called with");
  });

  testScripts("preinst refuses a unit and an example config of somebody else, and not a manual page", () => {
    const unit = `/usr/lib/systemd/system/${nodeAgent}.service`;
    const list = `/usr/share/${product}/10-${product}.conflist`;
    const printed = onCopy(`
mkdir -p /usr/share/${product} /usr/share/man/man8
: >/usr/share/man/man8/${nodeAgent}.8.gz
sh /packages/preinst install
for path in ${unit} ${list}; do
  : >$path
  if sh /packages/preinst install; then exit 1; fi
  rm $path
done
`);

    for (const path of [unit, list]) expect(printed).toContain(`${path} exists and belongs to no package`);
  });
});

describe("maintainer scripts in a chroot", () => {
  testScripts("only remove files, also if nothing tells whether it is one", () => {
    const printed = onCopy(`
network
speaker
mkdir /tmp/other
mount --bind / /tmp/other
mkdir -p /tmp/other/proc /tmp/other/packages
test ! -e /tmp/other/proc/1
nft list tables >/tmp/tables
for script in prerm postrm; do cp /packages/$script /tmp/$script; done
chroot /tmp/other sh /tmp/prerm remove
rm ${BIN_DIRECTORY}/${nodeAgent}
chroot /tmp/other sh /tmp/postrm purge
nft list tables | diff /tmp/tables -
test -e ${runDirectory}/agent
test ! -e ${stateDirectory}
test ! -e ${logDirectory}
`);

    expect(printed).not.toContain("called with");
  });
});

describe("prerm remove", () => {
  testScripts("calls the program with no run directory but its own, and not on a node of a cluster", () => {
    const printed = onCopy(`
speaker
export ${environmentPrefix}RUN_DIRECTORY=/tmp/precious
prerm remove
mkdir -p ${stateDirectory}
: >${stateDirectory}/installed.json
echo "of a cluster"
prerm remove in-favour other 1
`);
    const [before = "", after = ""] = printed.split("of a cluster\n");

    expect(before).toBe("called with uninstall --keep-files and run directory ()\n");
    expect(after).toContain("the network is left: a cluster has installed it");
  });

  testScripts("says once that it may not, and leaves no directory behind", () => {
    const printed = onCopy(`
program
setpriv --bounding-set=-net_admin --inh-caps=-net_admin sh /packages/prerm remove
test ! -e ${runDirectory}
`);

    expect(printed.match(/EPERM/g)).toHaveLength(1);
    expect(printed).toMatch(/"dpkg --purge \S+" removes them, or restart the host/);
  });

  testScripts(
    "refuses while a container uses the network, without stopping the agent, and goes on with FORCE=1",
    () => {
      const printed = onCopy(`
program
network
mkdir -p /run/systemd/system
ip link add ${LINK} type veth peer name other
ip link set ${LINK} alias pods/web/eth0
state >/tmp/state
for arguments in remove "remove in-favour other 1"; do
  if prerm $arguments; then exit 1; fi
  same
done
if grep -s "stop ${nodeAgent}" /tmp/asked; then exit 1; fi
echo forced
FORCE=1 prerm remove
same
grep -q "stop ${nodeAgent}" /tmp/asked
`);
      const [refused = "", forced = ""] = printed.split("forced\n");

      expect(refused).toContain("1 container uses it: web (remove these containers first");
      expect(refused).toContain(`not removed, since these containers would lose their plugin: remove them first`);
      expect(refused).toContain(`FORCE=1 dpkg --remove ${product}`);
      expect(forced).toContain("1 container uses it: web");
      expect(forced).not.toContain("not removed");
    },
  );

  testScripts("leaves the network to a container whose record cannot be read, and to one that starts meanwhile", () => {
    const printed = onCopy(`
program
network
mkdir -p ${dirname(RECORD)}
echo '{"owner":"podman/bridged/eth0","netns":"netns 4/1 5 /run/netns/c","records":[{"kind":"future"}]}' >${RECORD}
state >/tmp/state
FORCE=1 prerm remove
same
rm -r ${dirname(RECORD)}
${process.execPath} test/deploy/late-container.process.ts ${BIRD.control} ${LINK} &
while [ ! -S ${BIRD.control} ]; do sleep 0.1; done
nft list tables >/tmp/tables
FORCE=1 prerm remove
nft list tables | diff /tmp/tables -
ip route | grep -q 'proto ${ROUTE_PROTOCOL.own}'
kill $!
`);

    expect(printed).toContain(`1 container uses it: one whose record "${RECORD}" cannot be read`);
    expect(printed).toContain(`1 container uses it: ${LINK}`);
  });
});

describe("postrm purge", () => {
  testScripts("leaves everything to another installation, and to an agent that runs", () => {
    const printed = onCopy(`
network
speaker
printf '[Install]\\nWantedBy=multi-user.target\\n' >/usr/lib/systemd/system/${nodeAgent}.service
deb-systemd-helper enable ${nodeAgent}.service
test -L ${ENABLED}
state >/tmp/state
postrm purge
same
test -L ${ENABLED}
rm ${BIN_DIRECTORY}/${nodeAgent}
flock ${LOCK} sleep 1000 &
while flock --nonblock ${LOCK} true; do sleep 0.1; done
postrm purge
same
test -L ${ENABLED}
kill $!
`);

    expect(printed).toContain(`are left: ${BIN_DIRECTORY}/${nodeAgent} is of another installation`);
    expect(printed).toContain(`are left: an agent of another installation runs (${LOCK} is locked)`);
  });

  testScripts("removes what a removal had to leave: BIRD, routes, tunnels, tables; nothing of others", () => {
    const printed = onCopy(`
network
ip link add ${vxlanDevice} type vxlan id 4096 dstport 4789 dev lo
ip link add tunl0 type bridge
ip address add 10.66.0.1/32 dev tunl0
ip link set tunl0 up alias "${nodeAgent} 10.66.0.1"
cp "$(command -v sleep)" /tmp/bird
/tmp/bird 1000 &
echo $! >${BIRD.pid}
postrm purge
if kill -0 $! 2>/dev/null; then exit 1; fi
ip -o link show
ip -o address show dev tunl0
cat /sys/class/net/tunl0/ifalias
state
`);

    expect(printed).toContain(" tunl0: <BROADCAST,MULTICAST> ");
    expect(printed).not.toContain(vxlanDevice);
    expect(printed).toEndWith("10.68.0.0/26 dev lo proto static scope link \n");
    expect(printed).not.toContain("10.66.0.");
  });

  testScripts("ends no other process, and leaves the routes of another BIRD", () => {
    const printed = onCopy(`
network
sleep 1000 &
echo $! >${BIRD.pid}
other=$!
cp "$(command -v sleep)" /tmp/bird
/tmp/bird 1000 &
postrm purge
kill $other
kill $!
ip route
`);

    expect(printed).toContain("routes of BIRD may be left until the host is restarted");
    expect(printed).toContain("10.67.0.0/26 dev lo");
    expect(printed).not.toContain("10.66.0.0/26");
  });

  testScripts("names the containers that still use the network, and the commands that remove what is left", () => {
    const printed = onCopy(`
network
id=$(printf 'ab%.0s' $(seq 32))
ip link add ${LINK} type veth peer name other
ip link set ${LINK} alias "pods/$id/eth0"
ip link add ${vxlanDevice} type vxlan id 4096 dstport 4789 dev lo
mkdir -p ${dirname(RECORD)}
echo "{\\"owner\\":\\"pods/$id/eth0\\",\\"netns\\":\\"netns 4/1 5 /proc/self/ns/net\\",\\"records\\":[]}" >${RECORD}
postrm purge 2>/tmp/said
cat /tmp/said
ip link delete ${LINK}
sed -n 's/^  //p' /tmp/said >/tmp/commands
sh -e /tmp/commands
echo "left:"
state
ip -o link show
`);
    const [said = "", left = ""] = printed.split("left:\n");

    expect(said).toContain("containers still use the network (abababababab): ");
    expect(said).toContain(`  nft delete table inet ${natTable}\n`);
    expect(left).not.toContain("table");
    expect(left).not.toContain("10.66.0.");
    expect(left).not.toContain(vxlanDevice);
    expect(left).not.toContain(stateDirectory);
  });

  testScripts("counts a record that cannot be read as a container", () => {
    const printed = onCopy(`
network
mkdir -p ${dirname(RECORD)}
echo '{' >${RECORD}
postrm purge
test -e ${stateDirectory}/datastore.sqlite
nft list tables
`);

    expect(printed).toContain(`containers still use the network (${RECORD})`);
    expect(printed).toContain(natTable);
  });

  testScripts("empties a mount point, says that it is left, and does not fail", () => {
    const printed = onCopy(`
mkdir -p ${stateDirectory} ${logDirectory}
mount -t tmpfs none ${stateDirectory}
mount -t tmpfs none ${logDirectory}
echo data >${stateDirectory}/datastore.sqlite
mkdir ${logDirectory}/cni
postrm purge
find ${stateDirectory} ${logDirectory}
`);

    for (const path of [stateDirectory, logDirectory]) expect(printed).toContain(`${product}: ${path} is left: `);
    expect(printed).toEndWith(`${stateDirectory}\n${logDirectory}\n`);
  });
});
