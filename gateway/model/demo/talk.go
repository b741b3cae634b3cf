package demo

import (
	"fmt"
	"strconv"
	"strings"
)

// longest is how far the demo counts.
const longest = 10_000

func talkShapes() []shape {
	answer := func(text string) func(*env, []string) *step {
		return func(*env, []string) *step { return say(text) }
	}
	return []shape{
		{`(?:hi|hello|hey|good (?:morning|afternoon|evening|day)|greetings|hallo|howdy)(?:\s+(?:there|herald|all|everyone))?[,!. ]*`, func(e *env, m []string) *step {
			return say("Hello! " + e.examples())
		}},
		{`(?:thanks|thank you|thx|cheers|great|nice|perfect|cool|good|ok|okay|fine|well done)(?:\s+(?:a lot|very much|so much|herald|job|work))?[!. ]*`, answer("You're welcome.")},
		{`(?:bye|goodbye|good night|see you|ciao)(?:\s+.*)?`, answer("Goodbye! The conversation is kept; come back any time.")},
		{`how are you(?:\s+.*)?`, answer("I run. As a demo I have no feelings, but all my fixed phrases are in place.")},
		{`(?:who|what) are you|are you (?:real|an? .+)|what model (?:are you|is this)|which model (?:are you|is this)`, answer(
			"I'm " + Name + ", the model that is built into Herald so that everything can be tried at once. I recognise some fixed phrases and turn them into tool calls. " +
				"I don't understand language; a real model does, and plugs in with `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` (and `OPENAI_BASE_URL`), `OPENROUTER_API_KEY`, or a local Ollama.")},
		{`(?:help|help me|what can (?:you|i) do(?: here)?|what do you do|what tools (?:do you have|are there)|which tools (?:do you have|are there)|show me what you can do|\?)`, func(e *env, m []string) *step {
			return say(e.help())
		}},
		{`(?:tell\s+me\s+)?(?:what(?:'s| is)\s+)?(?:the\s+)?(?:current\s+)?(?:time|date|day)(?:\s+(?:is it|and (?:the )?(?:date|time)))?(?:\s+(?:now|today|it is|please))?|what (?:time|day|date) is it(?:\s+(?:now|today))?`, func(e *env, m []string) *step {
			return say(e.now.Format("It is 15:04:05 on Monday, 2 January 2006 (MST)."))
		}},
		{`remind me\s*:\s*(.+)`, func(e *env, m []string) *step { return say("⏰ Reminder: " + m[1]) }},
		{`(?:echo|repeat|say)(?:\s+after me)?\s*:?\s+(.+)`, func(e *env, m []string) *step {
			s := say(unquote(m[1]))
			s.whole = true
			return s
		}},
		{`what did i (?:just )?(?:say|write|ask|tell you)(?:\s+(?:before|last|earlier|first|just now))?|what was my (?:last|previous) (?:message|question)|what were we talking about`, func(e *env, m []string) *step {
			return say(e.saidBefore())
		}},
		{`what (?:did|does|was|is) (?:in )?(?:it|that|the|my|your)? ?(?:last |latest |newest )?(?:brief|job|delivery|reminder)(?: say| tell(?: me)?| mean| about)?|what did you (?:just )?send(?: me)?`, func(e *env, m []string) *step {
			if e.brief == "" {
				return say("No job has sent anything here yet.")
			}
			return say("The last one said:\n\n" + e.brief)
		}},
		{`count\s+(?:slowly\s+)?(?:from\s+(\d{1,6})\s+)?(?:up\s+)?to\s+(\d{1,6})(.*)`, func(e *env, m []string) *step {
			s := say(count(atoi(m[1]), atoi(m[2])))
			s.slow = strings.Contains(strings.ToLower(m[0]), "slow")
			return s
		}},
		{`(?:tell|write|give|read)\s+(?:me\s+)?(?:a|an|another)\s+(.*?)(?:story|tale|essay|text|poem|answer|speech|novel)(?:\s+(.*))?`, func(e *env, m []string) *step {
			long := strings.Contains(strings.ToLower(m[1]+" "+m[2]), "long")
			s := say(story(long))
			s.slow = long || strings.Contains(strings.ToLower(m[0]), "slow")
			return s
		}},
		{`(?:tell me a |another )?joke`, answer("Why did the daemon never finish its tea? It kept forking. (I know exactly one joke.)")},
		{`(?:what(?:'s| is)|calculate|compute|how much is|work out)\s+(.+)`, func(e *env, m []string) *step { return sum(m[1]) }},
		{`([\d\s.,+\-*/x×÷^%()]+(?:of[\d\s.]+)?)\s*=?`, func(e *env, m []string) *step { return sum(m[1]) }},
		{`stop|cancel|never ?mind|abort|enough`, answer("Nothing of mine is running now. While I work, `/stop` stops me at once.")},
		{`(?:yes|no|maybe|sure|yep|nope)`, answer("I asked nothing, or I forgot it: as a demo I don't follow a thread of questions. Tell me in one sentence what to do.")},
	}
}

func count(from, to int) string {
	if from == 0 {
		from = 1
	}
	end := ""
	if to > longest {
		to, end = longest, "\n\nI stop at "+strconv.Itoa(longest)+"."
	}
	if from > to {
		return "There is nothing to count from " + strconv.Itoa(from) + " up to " + strconv.Itoa(to) + "."
	}
	var b strings.Builder
	for i := from; i <= to; i++ {
		if i > from {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(i))
	}
	return b.String() + end
}

var tale = [...]string{
	"Once there was a small daemon that lived on a quiet server and carried messages for everyone in the house.",
	"Each morning it woke before the first bell, counted the letters of the night, and found that none was missing.",
	"One day the power failed in the middle of a sentence, and all the other daemons forgot what they had been told.",
	"The small one opened its book, found the page where it had stopped, and went on with the very next word.",
	"“How did you know?” asked the scheduler, who had slept through everything.",
	"“I write before I speak,” said the daemon, “and I never say a thing twice unless I know that it was not heard.”",
	"Word of this went round the rack, and soon letters came from rooms that the daemon had never seen.",
	"It learned to be brief in the rooms that were small, and to wait politely at the doors that said so.",
	"When winter came and the fans ran slowly, it told the younger processes how it had all begun.",
	"They listened, each in its own memory, and not one of them leaked.",
}

// story is the same every time. A long one takes some minutes when it is told slowly.
func story(long bool) string {
	if !long {
		return strings.Join(tale[:4], " ")
	}
	var b strings.Builder
	for chapter := 1; chapter <= 12; chapter++ {
		fmt.Fprintf(&b, "**Chapter %d.** ", chapter)
		for i := range tale {
			b.WriteString(tale[(i+3*(chapter-1))%len(tale)])
			b.WriteByte(' ')
		}
		b.WriteString("\n\n")
	}
	return b.String() + "The end."
}

// saidBefore quotes the newest earlier requests.
func (e *env) saidBefore() string {
	var said []string
	for i := len(e.before) - 1; i >= 0 && len(said) < 5; i-- {
		if m := e.before[i]; m.Role == "user" && strings.TrimSpace(m.Text) != "" {
			said = append(said, "- "+strings.Join(strings.Fields(clip(bareText(strings.TrimSpace(m.Text)), 200)), " "))
		}
	}
	switch len(said) {
	case 0:
		return "This is the first message that I see from you."
	case 1:
		return "Before this you said:\n\n" + said[0]
	}
	return "Before this you said, newest first:\n\n" + strings.Join(said, "\n")
}

// phrases are an example for each tool, in the order that help shows.
var phrases = [...]struct{ tool, what, example string }{
	{"write_file", "write a file", "write hello to notes.txt"},
	{"read_file", "show a file", "show notes.txt"},
	{"patch", "change a file", "change hello to bye in notes.txt"},
	{"search_files", "search files", "search the files for TODO"},
	{"terminal", "run a command", "run ls"},
	{"process", "look after background processes", "list the background processes"},
	{"execute_code", "run Python", "run this python: print(6*7)"},
	{"todo", "keep a todo list", "add milk to my todo list"},
	{"memory", "remember things", "remember that I like tea"},
	{"session_search", "search old conversations", "search our chats for milk"},
	{"clarify", "ask you something", "ask me which colour I like: red, green or blue"},
	{"cronjob", "do things on a schedule", "every minute tell me the time"},
	{"send_message", "send a message elsewhere", "send hello to telegram"},
	{"delegate_task", "hand work to a subagent", "delegate: count the files"},
	{"web_search", "search the web", "search the web for herald moth"},
	{"web_extract", "read a web page", "fetch https://example.com"},
	{"browser_navigate", "use a browser", "open https://example.com"},
	{"skills_list", "list skills", "list your skills"},
	{"skill_view", "show a skill", "show skill herald"},
	{"skill_manage", "write a skill", "create a skill tea: Boil water first."},
	{"vision_analyze", "look at a picture", "describe photo.png"},
	{"image_generate", "draw", "draw a picture of a moth"},
	{"text_to_speech", "speak", "say hello aloud"},
	{"computer_use", "use the screen", "take a screenshot"},
	{"ha_list_entities", "look at the home", "list entities in kitchen"},
	{"tool_search", "find more tools", "find a tool for issues"},
}

// help lists what can be tried, of what is offered only.
func (e *env) help() string {
	var b strings.Builder
	b.WriteString("I can talk a little (“what time is it?”, “what is 6*7?”, “echo hello”, “count to 500 slowly”) and send files (“send me notes.txt”)")
	listed := map[string]bool{}
	n := 0
	for _, p := range phrases {
		if !e.offered(p.tool) {
			continue
		}
		if n++; n == 1 {
			b.WriteString(", and these tools are offered to me:\n")
		}
		listed[p.tool] = true
		fmt.Fprintf(&b, "\n- %s (`%s`): “%s”", p.what, p.tool, p.example)
	}
	var more []string
	for _, name := range e.order {
		if !listed[name] && e.offered(name) {
			more = append(more, "`"+name+"`")
		}
	}
	switch {
	case n == 0 && len(more) == 0:
		b.WriteString(". No tools are offered to me in this conversation.")
		return b.String()
	case len(more) > 0:
		if n == 0 {
			b.WriteString(".")
		}
		b.WriteString("\n\nAlso offered: " + strings.Join(more[:min(len(more), 60)], ", ") + ".")
	}
	b.WriteString("\n\nAny tool works by name, as in “use read_file with {\"path\": \"notes.txt\"}” or “call read_file path=notes.txt”. Steps can be joined: “write hello to a.txt then run cat a.txt”.")
	return b.String()
}

// examples names a few phrases that work here.
func (e *env) examples() string {
	var ex []string
	for _, p := range phrases {
		if e.offered(p.tool) && len(ex) < 4 {
			ex = append(ex, "“"+p.example+"”")
		}
	}
	ex = append(ex, "“what can you do?”")
	if len(ex) == 1 {
		return "Try " + ex[0] + "."
	}
	return "Try " + strings.Join(ex[:len(ex)-1], ", ") + " or " + ex[len(ex)-1] + "."
}

// unknown answers what no rule fits.
func (e *env) unknown(text string) *step {
	if e.images > 0 {
		return say("I got " + plural(e.images, "picture", "pictures") + ", but the demo model can't see. " + e.examples())
	}
	// A scheduled reminder reaches a session of its own as a plain text.
	if low := strings.ToLower(e.system); strings.Contains(low, "scheduled") && strings.Contains(low, "cron") && len(text) < 400 {
		return say(text)
	}
	return say("I don't know how to do that: as a demo I only recognise some fixed phrases. " + e.examples())
}
