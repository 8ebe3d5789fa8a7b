// The first import of a check: takes the file it names out of the submission's reach.

import fs from "node:fs";

fs.unlinkSync(new URL(import.meta.url).searchParams.get("file"));
