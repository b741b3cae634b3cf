package agent

import (
	"fmt"
	"os"
	"strings"

	"herald/gateway/model"
	"herald/platforms"
	"herald/sessions"
)

// maxImage is the largest picture that is sent to a model, in bytes: providers refuse about 5 MB.
const maxImage = 5 << 20

// Conversation turns transcript rows into the messages that a model takes. Adjacent user rows are merged,
// every tool call gets exactly one result right behind its answer (a missing one is reported as
// unknown), results whose call is not there are left out, and notices are skipped. images selects the
// turn whose pictures are sent; older ones are only mentioned.
func Conversation(rows []sessions.Message, images sessions.TurnID) []model.Message {
	out := make([]model.Message, 0, len(rows))
	for i, row := range rows {
		switch {
		case row.Kind == sessions.KindNotice, row.Role == sessions.Tool:
			continue
		case row.Role == sessions.User && row.Kind == sessions.KindSteer && len(out) > 0 && out[len(out)-1].Role == "tool":
			out[len(out)-1].Text += steerNote(row)
		case row.Role == sessions.User:
			between := "\n\n"
			if i > 0 && delivered(rows[i-1]) && row.Kind == sessions.KindPlain {
				between += DeliveryEnd + "\n\n"
			}
			out = appendUser(out, row, images, between)
		case row.Role == sessions.Assistant:
			out = appendAssistant(out, row, rows[i+1:])
		}
	}
	return out
}

// DeliveryEnd stands between the output of a job and what a person writes behind it: both are the user's to a model.
const DeliveryEnd = "[End of the delivery]"

// delivered reports whether a row is the output of a job.
func delivered(row sessions.Message) bool {
	return row.Role == sessions.User && row.Kind == sessions.KindMirror
}

func steerNote(row sessions.Message) string {
	return "\n\n[Note from the user while you were working: " + row.Content + "]"
}

func appendUser(out []model.Message, row sessions.Message, images sessions.TurnID, between string) []model.Message {
	text := row.Content
	switch {
	case row.Kind == sessions.KindObserved:
		text = fmt.Sprintf("[Heard in the room, not said to you] %s: %s", row.Sender, text)
	case row.Kind == sessions.KindSteer:
		text = strings.TrimSpace(steerNote(row))
	case row.Sender != "":
		text = row.Sender + ": " + text
	}
	pictures := picturesOf(row, images)
	if n := len(out); n > 0 && out[n-1].Role == "user" {
		if text != "" {
			if out[n-1].Text != "" {
				out[n-1].Text += between
			}
			out[n-1].Text += text
		}
		out[n-1].Images = append(out[n-1].Images, pictures...)
		return out
	}
	return append(out, model.Message{Role: "user", Text: text, Images: pictures})
}

func picturesOf(row sessions.Message, images sessions.TurnID) []model.Image {
	if images == 0 || row.Turn != images {
		return nil
	}
	var out []model.Image
	for _, a := range row.Attachments {
		if a.Kind != platforms.Image || a.Path == "" || a.Size > maxImage {
			continue
		}
		data, err := os.ReadFile(a.Path)
		if err != nil || len(data) > maxImage {
			continue // the text already names the file, so the model knows that it exists
		}
		out = append(out, model.Image{MIME: a.MIME, Data: data})
	}
	return out
}

// resultOf finds the result of a call among the rows behind its answer, up to the next answer with calls:
// providers use the same ids again in later answers.
func resultOf(call string, behind []sessions.Message) (sessions.Message, bool) {
	for _, row := range behind {
		if row.Role == sessions.Tool && row.ToolCallID == call {
			return row, true
		}
		if len(row.ToolCalls) > 0 {
			break
		}
	}
	return sessions.Message{}, false
}

func appendAssistant(out []model.Message, row sessions.Message, behind []sessions.Message) []model.Message {
	if n := len(out); row.Kind == sessions.KindMirror || (len(row.ToolCalls) == 0 && n > 0 && out[n-1].Role == "assistant" &&
		len(out[n-1].ToolCalls) == 0) {
		if n > 0 && out[n-1].Role == "assistant" && len(out[n-1].ToolCalls) == 0 {
			out[n-1].Text += "\n\n" + row.Content
			return out
		}
	}
	m := model.Message{Role: "assistant", Text: row.Content, Replay: row.Replay}
	for _, c := range row.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	if m.Text == "" && len(m.ToolCalls) == 0 {
		return out
	}
	out = append(out, m)
	for _, c := range row.ToolCalls {
		result, ok := resultOf(c.ID, behind)
		text := result.Content
		if !ok {
			text = UnknownOutcome
		}
		if text == "" {
			text = "(no output)"
		}
		out = append(out, model.Message{Role: "tool", ToolCallID: c.ID, ToolName: c.Name, Text: text})
	}
	return out
}

// UnknownOutcome is what a model is told about a call that began and has no recorded end.
const UnknownOutcome = "[outcome unknown: Herald was interrupted while this call ran. It may or may not have taken effect; it was not run again. Check before you repeat it.]"

// NotRun is what a model is told about a call that never began.
const NotRun = "[not run: the turn was interrupted before this call began]"

// Estimate returns about how many tokens the rows take: four characters each, plus a few per row.
func Estimate(rows []sessions.Message) int {
	n := 0
	for _, r := range rows {
		n += 4 + len(r.Content)/4
		for _, c := range r.ToolCalls {
			n += 8 + len(c.Arguments)/4
		}
	}
	return n
}
