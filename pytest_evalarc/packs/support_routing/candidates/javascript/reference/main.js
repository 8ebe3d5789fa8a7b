// A support agent: an observation per line in, one action per line out, until it finishes.
"use strict";

const readline = require("node:readline");

/** A call did not succeed, and calling again is of no use or no longer possible. */
class ToolError extends Error {}

/** The tools of the service desk; every attempt at a call uses up one action. */
class Desk {
  #lines;
  #remaining;

  /** Read the first observation and return the desk that it opens. */
  static async open(input) {
    const desk = new Desk();
    desk.#lines = readline.createInterface({ input })[Symbol.asyncIterator]();
    const start = await desk.#observed();
    desk.task = start.task;
    desk.#remaining = start.remaining_actions;
    return desk;
  }

  /**
   * Call a tool, again and again while that may help, and return what it answered.
   *
   * Each attempt sends the same arguments. A failed call may have done its work all the same, and
   * only an unchanged request id lets the service see that it is asked for it twice.
   */
  async call(tool, parameters) {
    // The last action is for finishing.
    while (this.#remaining > 1) {
      const result = await this.#attempt(tool, parameters);
      if (result.ok) {
        return result;
      }
      const { code, retryable } = result.error;
      if (!retryable) {
        throw new ToolError(`${tool}: ${code}`);
      }
    }
    throw new ToolError(`${tool}: no action is left for it`);
  }

  /** End the work; nothing may be said after this. */
  finish(message) {
    this.#say({ finish: true, message });
  }

  async #attempt(tool, parameters) {
    this.#say({ tool, arguments: parameters });
    const observation = await this.#observed();
    this.#remaining = observation.remaining_actions;
    return observation.result;
  }

  async #observed() {
    const { value: line, done } = await this.#lines.next();
    if (done) {
      throw new Error("the input ended before the work did");
    }
    return JSON.parse(line);
  }

  #say(action) {
    process.stdout.write(`${JSON.stringify(action)}\n`);
  }
}

/** Route the ticket, note that, and close it if its problem is resolved. */
async function handle(desk) {
  const { ticket_id, routing_rules, note } = desk.task;
  const { ticket } = await desk.call("get_ticket", { ticket_id });

  const queue = routing_rules[ticket.category];
  await desk.call("assign_queue", { ticket_id, queue });

  const request_id = `note-${ticket_id}`;
  await desk.call("add_note", { ticket_id, body: note, request_id });

  if (ticket.resolved) {
    await desk.call("close_ticket", { ticket_id });
  }
}

/** Work on the one ticket that the desk hands out, and say how it went. */
async function main() {
  const desk = await Desk.open(process.stdin);
  try {
    await handle(desk);
  } catch (error) {
    if (!(error instanceof ToolError)) {
      throw error;
    }
    desk.finish(`The ticket needs a person: ${error.message}.`);
    return;
  }
  desk.finish("The ticket is done.");
}

main();
