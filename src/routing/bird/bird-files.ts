/** The files of BIRD on this host, all in one directory for root alone: its configuration holds passwords. */
import { join } from "node:path";

export interface BirdFiles {
  readonly directory: string;
  readonly configuration: string;
  /** Not checked yet. */
  readonly candidate: string;
  readonly control: string;
  /** Exists while BIRD runs, and after it was killed; a BIRD that ends by itself removes it. */
  readonly pid: string;
  /** What the node agent says about BIRD, for `node status`. */
  readonly state: string;
}

export function birdFiles(runDirectory: string): BirdFiles {
  const directory = join(runDirectory, "bird");
  const of = (name: string) => join(directory, name);
  return {
    directory,
    configuration: of("bird.conf"),
    candidate: of("bird.conf.new"),
    control: of("bird.ctl"),
    pid: of("bird.pid"),
    state: of("state.json"),
  };
}
