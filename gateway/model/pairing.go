package model

// NoResult is what a tool call without a recorded result is answered with; see Paired.
const NoResult = "No result was recorded for this call; whether it ran is unknown."

// Paired returns messages such that every tool call of an assistant message is followed by exactly one tool
// message, in the order of the calls, before anything else. Providers refuse a conversation that breaks
// this, for good, so a hole in a history must never reach them. A call without a result gets NoResult as an
// error; a result without a call becomes a user message that quotes it; of two results for one call the
// first counts. A sound conversation, the normal case, is returned as it is, without a copy.
func Paired(messages []Message) []Message {
	if paired(messages) {
		return messages
	}
	out := make([]Message, 0, len(messages)+4)
	for i := 0; i < len(messages); {
		m := messages[i]
		i++
		if m.Role == "tool" {
			out = append(out, orphan(m))
			continue
		}
		out = append(out, m)
		if m.Role != "assistant" || len(m.ToolCalls) == 0 {
			continue
		}
		results := make(map[string]Message, len(m.ToolCalls))
		wanted := make(map[string]bool, len(m.ToolCalls))
		for _, c := range m.ToolCalls {
			wanted[c.ID] = true
		}
		var orphans []Message
		for i < len(messages) && messages[i].Role == "tool" {
			r := messages[i]
			i++
			if _, twice := results[r.ToolCallID]; twice {
				continue
			}
			if !wanted[r.ToolCallID] {
				orphans = append(orphans, orphan(r))
				continue
			}
			results[r.ToolCallID] = r
		}
		for _, c := range m.ToolCalls {
			r, ok := results[c.ID]
			if !ok {
				r = Message{Role: "tool", Text: NoResult, ToolCallID: c.ID, ToolName: c.Name, IsError: true}
			}
			out = append(out, r)
		}
		out = append(out, orphans...)
	}
	return out
}

func orphan(m Message) Message {
	return Message{Role: "user", Text: "[Result of an earlier call of " + m.ToolName + "]\n" + m.Text, Images: m.Images}
}

func paired(messages []Message) bool {
	for i := 0; i < len(messages); i++ {
		m := &messages[i]
		if m.Role == "tool" {
			return false
		}
		if m.Role != "assistant" {
			continue
		}
		for _, c := range m.ToolCalls {
			i++
			if i >= len(messages) || messages[i].Role != "tool" || messages[i].ToolCallID != c.ID {
				return false
			}
		}
	}
	return true
}
