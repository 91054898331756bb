// What the page does without its server.
const TABLE = "#pasted textarea", QUESTION = "#question textarea, #question input";

function type(selector, text) {
  const field = document.querySelector(selector);
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

// A link may bring a question and its table, behind the # that no server sees.
function readLink() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (!given.get("question") || !given.get("table")) return;
  type(TABLE, given.get("table"));
  type(QUESTION, given.get("question"));
  document.querySelector("#ask").click();
}

// Ask waits for the table: while a file is on its way to the server, and while the server reads.
const tables = window.tables = {
  names: [], // of those that the server reads
  address: "", // of the file that it began to read last
  begin(file) {
    this.names.push(file?.orig_name ?? "the table");
    this.address = file?.url;
    this.show();
  },
  end() {
    this.names.shift();
    this.show();
  },
  reading() {
    const uploading = document.querySelector("#file .file-name");
    const here = document.querySelector("#file a[download]"); // maybe not yet begun
    const waits = here && here.href !== this.address ? here.download : undefined;
    return this.names[0] ?? uploading?.textContent ?? waits;
  },
  show() {
    const name = this.reading();
    for (const box of document.querySelectorAll("#file, #result")) {
      if (name) box.dataset.reading = name;
      else delete box.dataset.reading;
    }
    if (name) document.querySelector("#said").textContent = `Reading ${name}`;
  },
  async idle() {
    for (let times = 0; times < 2; times += 1) {
      await new Promise((done) => setTimeout(done, 50));
      if (this.reading()) times = -1;
    }
  },
};

// Screen readers say what changes within an element that was there before: the answer in a sentence.
function sayAnswers() {
  const said = document.createElement("div");
  said.id = "said";
  said.setAttribute("role", "status");
  document.body.append(said);
  new MutationObserver(() => {
    const parts = document.querySelectorAll("#result .verdict, #result .text");
    const text = [...parts].map((part) => part.textContent).join(" ");
    if (said.textContent !== text) said.textContent = text;
  }).observe(document.querySelector("#result"), { childList: true, subtree: true });
}

// A long cell is cut; a click shows it whole, where there is no pointer to rest on it.
document.addEventListener("click", (event) => {
  event.target.closest("#result .long")?.classList.toggle("whole");
});

// Gradio fetches the code of each kind of field by itself, so that they come one by one.
const NEEDED = [TABLE, QUESTION, "#ask", "#result table"];

const waiting = setInterval(() => {
  if (!NEEDED.every((selector) => document.querySelector(selector))) return;
  clearInterval(waiting);
  document.documentElement.lang = "en";
  sayAnswers();
  const file = document.querySelector("#file");
  new MutationObserver(() => tables.show()).observe(file, { childList: true, subtree: true });
  const title = document.querySelector("#source > .block > .label-wrap, #source button.label-wrap");
  if (innerWidth < 760 && title?.classList.contains("open")) title.click();
  readLink();
}, 50);
