/**
 * Removes links of its namespace, all at once: `NAME …`. With `gone` before the names,
 * they are removed before that, so that they do not exist any more. Prints how many
 * removals were refused.
 */
import { closeNetlinkSocket, openNetlinkSocket, perform } from "../../src/linux/netlink-socket.ts";
import { deleteLink, findLink } from "../../src/linux/rtnetlink/link.ts";
import { OWN_REMOVAL } from "../../src/linux/rtnetlink/link-access.ts";
import { openLinkRemoval } from "../../src/linux/rtnetlink/link-removal.ts";

const [first, ...rest] = process.argv.slice(2);
const isGone = first === "gone";
const names = isGone ? rest : [first ?? "", ...rest];

const socket = openNetlinkSocket("route");
const links = names.map((name) => {
  const link = findLink(socket, name);
  if (link === undefined) throw new Error(`there is no link "${name}"`);
  return link;
});
if (isGone) perform(socket, links.slice(0, 1).map(deleteLink));
closeNetlinkSocket(socket);

const removal = openLinkRemoval(OWN_REMOVAL);
const refusals = await Promise.all(links.map((link) => removal.remove(link)));
console.log(refusals.filter((refusal) => refusal !== undefined).length);
