/** Writes `published-facts.jsonl` from the clone that `PUBLISHED_MANIFESTS_REPOSITORY` names. */
import { writeFileSync } from "node:fs";
import { FACTS_FILE, recordFacts } from "./published-facts.ts";

writeFileSync(FACTS_FILE, recordFacts());
