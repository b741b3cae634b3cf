package slack

import (
	"strings"
)

// emoji are Slack's names of common emoji. A reaction with another name comes in as ":name:", and an emoji that is not
// here goes out by that form too.
var emoji = map[string]string{
	"eyes": "👀", "white_check_mark": "✅", "heavy_check_mark": "✔️", "x": "❌", "negative_squared_cross_mark": "❎", "heavy_multiplication_x": "✖️",
	"+1": "👍", "-1": "👎", "ok_hand": "👌", "clap": "👏", "pray": "🙏", "wave": "👋", "muscle": "💪", "raised_hands": "🙌",
	"handshake": "🤝", "point_up": "☝️", "point_right": "👉", "point_left": "👈", "point_down": "👇", "v": "✌️", "crossed_fingers": "🤞", "raised_hand": "✋",
	"heart": "❤️", "orange_heart": "🧡", "yellow_heart": "💛", "green_heart": "💚", "blue_heart": "💙", "purple_heart": "💜", "black_heart": "🖤",
	"broken_heart": "💔", "fire": "🔥", "tada": "🎉", "confetti_ball": "🎊", "star": "⭐", "star2": "🌟", "sparkles": "✨", "100": "💯", "boom": "💥",
	"smile": "😄", "smiley": "😃", "grinning": "😀", "grin": "😁", "joy": "😂", "rolling_on_the_floor_laughing": "🤣", "slightly_smiling_face": "🙂",
	"upside_down_face": "🙃", "wink": "😉", "blush": "😊", "heart_eyes": "😍", "kissing_heart": "😘", "yum": "😋", "sunglasses": "😎", "thinking_face": "🤔",
	"neutral_face": "😐", "expressionless": "😑", "face_with_rolling_eyes": "🙄", "smirk": "😏", "unamused": "😒", "pensive": "😔", "confused": "😕",
	"worried": "😟", "cry": "😢", "sob": "😭", "scream": "😱", "rage": "😡", "angry": "😠", "exploding_head": "🤯", "flushed": "😳", "sleeping": "😴",
	"mask": "😷", "face_with_monocle": "🧐", "shushing_face": "🤫", "zipper_mouth_face": "🤐", "saluting_face": "🫡", "hugging_face": "🤗", "skull": "💀",
	"ghost": "👻", "robot_face": "🤖", "poop": "💩", "see_no_evil": "🙈", "hear_no_evil": "🙉", "speak_no_evil": "🙊", "face_palm": "🤦", "shrug": "🤷",
	"warning": "⚠️", "no_entry": "⛔", "no_entry_sign": "🚫", "octagonal_sign": "🛑", "question": "❓", "grey_question": "❔", "exclamation": "❗",
	"hourglass": "⌛", "hourglass_flowing_sand": "⏳", "stopwatch": "⏱️", "alarm_clock": "⏰", "watch": "⌚", "calendar": "📆", "date": "📅", "pushpin": "📌",
	"rocket": "🚀", "hammer": "🔨", "hammer_and_wrench": "🛠️", "wrench": "🔧", "gear": "⚙️", "bug": "🐛", "lock": "🔒", "unlock": "🔓", "key": "🔑",
	"mag": "🔍", "bulb": "💡", "memo": "📝", "pencil2": "✏️", "books": "📚", "book": "📖", "link": "🔗", "paperclip": "📎", "email": "✉️", "e-mail": "📧", "inbox_tray": "📥",
	"outbox_tray": "📤", "package": "📦", "wastebasket": "🗑️", "file_folder": "📁", "clipboard": "📋", "chart_with_upwards_trend": "📈",
	"chart_with_downwards_trend": "📉", "bar_chart": "📊", "computer": "💻", "iphone": "📱", "telephone_receiver": "📞", "speaker": "🔈", "bell": "🔔",
	"no_bell": "🔕", "loudspeaker": "📢", "mega": "📣", "speech_balloon": "💬", "thought_balloon": "💭", "arrows_counterclockwise": "🔄", "repeat": "🔁",
	"arrow_forward": "▶️", "double_vertical_bar": "⏸️", "fast_forward": "⏩", "rewind": "⏪", "arrow_up": "⬆️", "arrow_down": "⬇️", "arrow_right": "➡️",
	"arrow_left": "⬅️", "new": "🆕", "ok": "🆗", "sos": "🆘", "red_circle": "🔴", "large_green_circle": "🟢", "large_yellow_circle": "🟡",
	"large_blue_circle": "🔵", "white_circle": "⚪", "black_circle": "⚫", "one": "1️⃣", "two": "2️⃣", "three": "3️⃣", "four": "4️⃣", "five": "5️⃣",
	"coffee": "☕", "beer": "🍺", "beers": "🍻", "pizza": "🍕", "cake": "🍰", "birthday": "🎂", "gift": "🎁", "trophy": "🏆", "medal": "🎖️", "sports_medal": "🏅", "dart": "🎯",
	"sunny": "☀️", "cloud": "☁️", "rainbow": "🌈", "zap": "⚡", "snowflake": "❄️", "earth_africa": "🌍", "seedling": "🌱", "cat": "🐱", "dog": "🐶",
	"unicorn_face": "🦄", "snail": "🐌", "turtle": "🐢", "money_with_wings": "💸", "moneybag": "💰", "checkered_flag": "🏁", "triangular_flag_on_post": "🚩",
}

// aliases are second names that Slack uses for the same emoji.
var aliases = map[string]string{
	"thumbsup": "+1", "thumbsdown": "-1", "hand": "raised_hand", "thinking": "thinking_face", "robot": "robot_face", "unicorn": "unicorn_face",
	"heavy_exclamation_mark": "exclamation", "collision": "boom", "hankey": "poop", "shit": "poop", "envelope": "email",
	"pencil": "memo", "open_book": "book", "green_circle": "large_green_circle", "rofl": "rolling_on_the_floor_laughing",
}

// names of emoji by character, without the sign that asks for colour.
var emojiNames = func() map[string]string {
	m := make(map[string]string, len(emoji))
	for name, char := range emoji {
		m[bare(char)] = name
	}
	return m
}()

// bare takes the variation selector and skin tones off.
func bare(char string) string {
	return strings.Map(func(r rune) rune {
		if r == 0xFE0F || r >= 0x1F3FB && r <= 0x1F3FF {
			return -1
		}
		return r
	}, char)
}

// unicodeOf returns the character of Slack's name, or ":name:" for one that has none here.
func unicodeOf(name string) string {
	name, _, _ = strings.Cut(name, "::") // a skin tone
	if alias, ok := aliases[name]; ok {
		name = alias
	}
	if char, ok := emoji[name]; ok {
		return char
	}
	return ":" + name + ":"
}

// slackName returns Slack's name of an emoji, given as a character, as ":name:" or as a name.
func slackName(emojiOrName string) string {
	if name, ok := emojiNames[bare(emojiOrName)]; ok {
		return name
	}
	name := strings.Trim(emojiOrName, ":")
	name, _, _ = strings.Cut(name, "::")
	if alias, ok := aliases[name]; ok {
		return alias
	}
	return name
}
