/** Listens as BIRD does at the path that it is given, and a container appears while BIRD is asked to end: a link of that name. */
const [path = "", link = ""] = process.argv.slice(2);

Bun.listen({
  unix: path,
  socket: {
    open: (socket) => void socket.write("0001 BIRD 2.0.12 ready.\n"),
    data(socket, bytes) {
      const isEnd = bytes.toString().startsWith("down");
      if (isEnd) Bun.spawnSync(["ip", "link", "add", link, "type", "bridge"]);
      socket.write(isEnd ? "0007 Shutdown requested\n" : "0003 Reconfigured\n");
      if (isEnd) socket.end();
    },
  },
});
