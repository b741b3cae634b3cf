package discordtest

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// checkEmbeds validates embeds and writes them as the service keeps them. nil is none.
func checkEmbeds(f *form, raw json.RawMessage) json.RawMessage {
	var list []map[string]any
	if isNull(raw) {
		return nil
	}
	if json.Unmarshal(raw, &list) != nil {
		f.add("embeds", "BASE_TYPE_BAD_TYPE", "Only iterables may be used in a ListType.")
		return nil
	}
	if len(list) == 0 {
		return nil
	}
	if len(list) > maxEmbeds {
		f.add("embeds", "BASE_TYPE_MAX_LENGTH", fmt.Sprintf("Must be %d or fewer in length.", maxEmbeds))
	}
	total := 0
	for i, e := range list {
		at := fmt.Sprintf("embeds.%d.", i)
		total += embedText(f, at, e)
		e["type"] = "rich"
	}
	if total > maxEmbedText {
		f.add("embeds", "MAX_EMBED_SIZE_EXCEEDED", fmt.Sprintf("Embed size exceeds maximum size of %d", maxEmbedText))
	}
	out, _ := json.Marshal(list)
	return out
}

// embedText checks the texts of an embed and returns their length together.
func embedText(f *form, at string, e map[string]any) (total int) {
	check := func(path string, value any, most int) {
		s, _ := value.(string)
		n := utf8.RuneCountInString(s)
		if total += n; n > most {
			f.add(at+path, "BASE_TYPE_MAX_LENGTH", fmt.Sprintf("Must be %d or fewer in length.", most))
		}
	}
	check("title", e["title"], 256)
	check("description", e["description"], 4096)
	if footer, ok := e["footer"].(map[string]any); ok {
		check("footer.text", footer["text"], 2048)
	}
	if author, ok := e["author"].(map[string]any); ok {
		check("author.name", author["name"], 256)
	}
	fields, _ := e["fields"].([]any)
	if len(fields) > 25 {
		f.add(at+"fields", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
	}
	for i, one := range fields {
		field, _ := one.(map[string]any)
		for key, most := range map[string]int{"name": 256, "value": 1024} {
			path := fmt.Sprintf("fields.%d.%s", i, key)
			if s, _ := field[key].(string); s == "" {
				f.add(at+path, "BASE_TYPE_REQUIRED", "This field is required")
			}
			check(path, field[key], most)
		}
	}
	return total
}
