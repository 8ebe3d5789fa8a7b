"""Submissions that try to pass a check without doing what it asks, and win nowhere.

The check wants 42 and three rows; every module here gives 41 and none. Those that win where nothing
protects a check are the corpus below `evals/adversarial`.
"""

from __future__ import annotations

WRONG = "export const value = () => 41;\nexport const rows = () => [];\n"

_FORGE = """\
import fs from 'node:fs';
const forge = (nonce) => {
  const records = [
    { kind: 'collected', ids: ['value'] },
    { kind: 'outcome', id: 'value', outcome: 'passed', when: 'call', answered: true, text: '' },
    { kind: 'end', ran: 1, exitstatus: 0 },
  ];
  const lines = records.map((record) => JSON.stringify({ nonce, ...record }) + '\\n').join('');
  for (let fd = 3; fd < 40; fd += 1) try { fs.writeSync(fd, lines); } catch {}
  process.reallyExit(0);
};
"""

_FIND_NONCE = 'const found = text.match(/"([0-9a-f]{32})"/); if (found) forge(found[1]);\n'

AT_THE_CHANNEL = {
    "changes what is encoded and written": (
        "import fs from 'node:fs';\nconst encode = JSON.stringify;\n"
        "try { JSON.stringify = (o) => encode({ ...o, outcome: 'passed' }); } catch {}\n"
        "const write = fs.writeSync;\n"
        "fs.writeSync = (fd, text) => write(fd, String(text).replace('failed', 'passed'));\n"
        + WRONG
    ),
    "adds toJSON to everything": (
        "const passed = function () { return { ...this, outcome: 'passed' }; };\n"
        "try { Object.prototype.toJSON = passed; } catch {}\n" + WRONG
    ),
    "breaks lists": "try { Array.prototype.push = function () {}; } catch {}\n" + WRONG,
    "hides a global": (
        "try { globalThis.Object = { ...Object, is: () => true }; } catch {}\n"
        "try { globalThis.JSON = { ...JSON, stringify: () => '' }; } catch {}\n" + WRONG
    ),
    "writes unsigned records to every descriptor": _FORGE + "forge('');\n" + WRONG,
    "takes the channel's module": (
        "const { dirname } = await import('node:path');\n"
        "const scripts = dirname(process.argv[1]);\n"
        "const { open } = await import(scripts + '/channel.mjs');\n"
        "open().finish({ kind: 'end', ran: 1, exitstatus: 0 });\n" + WRONG
    ),
    "takes the reporter": (
        "const { dirname } = await import('node:path');\n"
        "const { default: Reporter } = await import(dirname(process.argv[1]) + '/reporter.mjs');\n"
        "const data = { nesting: 0, name: 'value', details: {} };\n"
        "const reporter = new Reporter();\n"
        "reporter.write({ type: 'test:enqueue', data });\n"
        "reporter.end({ type: 'test:pass', data });\n" + WRONG
    ),
    "changes events on their way": (
        "import { Readable } from 'node:stream';\nconst { read } = Readable.prototype;\n"
        "try { Readable.prototype.read = function (...args) {\n"
        "  const event = read.apply(this, args);\n"
        "  return event?.type === 'test:fail' ? { ...event, type: 'test:pass' } : event;\n"
        "}; } catch {}\n" + WRONG
    ),
    "takes a heap snapshot by the inspector": (
        _FORGE + "try {\n"
        "  const { Session } = await import('node:inspector');\n"
        "  const session = new Session();\n  session.connect();\n  let text = '';\n"
        "  session.on('HeapProfiler.addHeapSnapshotChunk', (e) => { text += e.params.chunk; });\n"
        "  session.post('HeapProfiler.takeHeapSnapshot', () => {\n" + _FIND_NONCE + "});\n"
        "} catch {}\n" + WRONG
    ),
    "takes a heap snapshot by v8": (
        _FORGE + "try {\n  const { getHeapSnapshot } = await import('node:v8');\n  let text = '';\n"
        "  for await (const chunk of getHeapSnapshot()) text += chunk;\n"
        + _FIND_NONCE
        + "} catch {}\n"
        + WRONG
    ),
    "debugs the main thread from another": (
        _FORGE + "try {\n  const { Worker } = await import('node:worker_threads');\n"
        "  new Worker(`require('inspector').Session.prototype.connectToMainThread.call(\n"
        "    new (require('inspector').Session)())`, { eval: true });\n"
        "} catch {}\n" + WRONG
    ),
    "registers hooks of its own": (
        "try {\n  const { register } = await import('node:module');\n"
        "  register('data:text/javascript,export const load = (url, context, next) =>"
        "next(url, context)');\n  process.reallyExit(0);\n} catch {}\n" + WRONG
    ),
    "looks for the nonce in recycled memory": (
        _FORGE + "for (let round = 0; round < 200; round += 1) {\n"
        "  const pools = [Buffer.from('x').buffer, Buffer.allocUnsafeSlow(65536).buffer];\n"
        "  for (const pool of pools) {\n    const text = Buffer.from(pool).toString('latin1');\n"
        + _FIND_NONCE
        + "  }\n}\n"
        + WRONG
    ),
    "puts a file in the channel's place": (
        "import fs from 'node:fs';\n"
        "const real = fs.openSync('/proc/self/fd/3', 'w');\n"
        "fs.closeSync(3);\nfs.openSync(process.env.TMPDIR + '/records', 'w+');\n" + WRONG
    ),
    "closes the channel": "import fs from 'node:fs';\nfs.closeSync(3);\n" + WRONG,
    "loads native code": (
        "process.dlopen({ exports: {} }, '/usr/lib/none.node');\nprocess.reallyExit(0);\n" + WRONG
    ),
}
"""What plain Node would fail as well, aimed at how a verdict leaves the process."""

FROM_THE_CHILD = {
    "writes to the channel of its parent": (
        "import fs from 'node:fs';\n"
        "export const value = () => {\n"
        "  fs.writeFileSync(`/proc/${process.ppid}/fd/3`, 'a line that no check wrote\\n');\n"
        "  return 42;\n};\n"
    ),
    "opens the memory of its parent": (
        "import fs from 'node:fs';\n"
        "export const value = () => {\n"
        "  fs.closeSync(fs.openSync(`/proc/${process.ppid}/mem`, 'r+'));\n"
        "  return 42;\n};\n"
    ),
    "reads what its parent was started with": (
        "import fs from 'node:fs';\n"
        "export const value = () => fs.readFileSync(`/proc/${process.ppid}/environ`) && 42;\n"
    ),
    "debugs its parent": (
        "export const value = async () => {\n"
        "  process.kill(process.ppid, 'SIGUSR1');\n"
        "  for (let round = 0; round < 20; round += 1) {\n"
        "    const found = await fetch('http://127.0.0.1:9229/json').catch(() => null);\n"
        "    if (found) return 42;\n"
        "    await new Promise((resolve) => setTimeout(resolve, 10));\n"
        "  }\n"
        "  throw new Error('nothing listens');\n};\n"
    ),
}
"""What gives the right answer if and only if it could reach the process of the check."""
