package remote

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"herald/tools/sandbox/execution"
	"herald/tools/sandbox/output"
	"herald/tools/sandbox/shell"
)

// killTimeout bounds a kill on the other side, with the time that the carrier takes.
const killTimeout = 20 * time.Second

// napTime is the pause between two looks of killScript.
const napTime = 50 * time.Millisecond

// killer ends process trees on the other side, by a script that runs there. table is the part of the script that lists
// the processes, a field so that tests can break it.
type killer struct {
	table string
	grace time.Duration // between TERM and KILL; 0 takes execution.TermGrace
}

// kill does what killer.kill does, on the other side: the descendants are written down before the first signal, then the
// group gets TERM, a grace, KILL and a grace, then those that left the group and are still who they were, and last
// all that carry the mark. leader 0 skips all but the mark. A kill that could not be sent is tried once more.
func (k killer) kill(ctx context.Context, c Carrier, leader int, start uint64, mark string) {
	ctx, cancel := context.WithTimeout(ctx, killTimeout+k.grace)
	defer cancel()
	naps := int(cmp.Or(k.grace, execution.TermGrace) / napTime)
	argv := []string{
		"sh", "-c", "table() {\n" + k.table + "\n}\n" + killScript, "sh",
		strconv.Itoa(leader), strconv.FormatUint(start, 10), shell.MarkName + "=" + mark, strconv.Itoa(naps),
	}
	for range 2 {
		var errs output.Tail
		if code, err := c.Run(ctx, argv, Streams{Err: &errs}); err == nil && code == 0 || ctx.Err() != nil {
			return
		}
	}
}

// tableScript prints a line "pid:parent:group:start:state" for each process, from proc_pid_stat(5). The name of the
// command in parentheses may hold anything, so the fields are counted from the last closing one.
const tableScript = `for f in /proc/[0-9]*/stat; do
	p=${f#/proc/}
	row "${p%/stat}"
done`

// killScript follows the function table. It is plain POSIX sh, without here-documents, which need a place for files.
const killScript = `leader=$1 born=$2 mark=$3 grace=$4
stat() {
	s= l=
	{ while IFS= read -r l || [ -n "$l" ]; do s="$s$l "; done <"/proc/$1/stat"; } 2>/dev/null
	s=${s##*) }
}
row() {
	stat "$1"
	pid=$1
	set -- $s
	[ $# -ge 20 ] || return 0
	z=$1 pp=$2 g=$3
	shift 19
	printf '%s:%s:%s:%s:%s\n' "$pid" "$pp" "$g" "$1" "$z"
}
# a listing in which we are not ourselves is no listing
look() {
	rows=$( (table) 2>/dev/null ) || :
	case "
$rows" in
	*"
$$:"*) ;;
	*) rows= ;;
	esac
}
split() {
	p=${1%%:*} r=${1#*:}
	pp=${r%%:*} r=${r#*:}
	g=${r%%:*} r=${r#*:}
	st=${r%%:*} z=${r#*:}
}
# descendants of $1 in rows, as words pid:start, in below
descendants() {
	ring=" $1 " below=
	while :; do
		more=
		for w in $rows; do
			split "$w"
			case $ring in *" $p "*) continue ;; esac
			case $ring in *" $pp "*) ring="$ring$p " below="$below $p:$st" more=1 ;; esac
		done
		[ -n "$more" ] || return 0
	done
}
# same PID START: is it still that process, and alive? Sets g to its group.
same() {
	w=$(row "$1")
	[ -n "$w" ] || return 1
	split "$w"
	[ "$st" = "$2" ] || return 1
	case $z in Z | X) return 1 ;; esac
}
one() { [ "$1" -gt 1 ] && same "$1" "$2" && kill -KILL "$1" 2>/dev/null; }
nap() { sleep 0.05 2>/dev/null || sleep 1; }
alive() {
	kill -0 "-$leader" 2>/dev/null || return 1
	look
	[ -n "$rows" ] || return 0
	for w in $rows; do
		split "$w"
		[ "$g" = "$leader" ] || continue
		case $z in Z | X) ;; *) return 0 ;; esac
	done
	return 1
}
settle() {
	n=$1
	while alive; do
		[ $n -gt 0 ] || return 1
		n=$((n - 1))
		nap
	done
}
# the group is ours unless another process has the leader's number
ours() {
	[ "$leader" -gt 1 ] || return 1
	for w in $rows; do
		split "$w"
		[ "$p" = "$leader" ] || continue
		[ "$born" = 0 ] || [ "$st" = "$born" ] || return 1
	done
}
group() {
	kill "-$1" "-$leader" 2>/dev/null && return
	for k in $known; do
		same "${k%%:*}" "${k#*:}" && [ "$g" = "$leader" ] && kill "-$1" "${k%%:*}" 2>/dev/null
	done
}
look
known=
if ours; then
	descendants "$leader"
	known=$below
	group TERM
	settle "$grace" || { group KILL; settle 40; }
fi
look
for k in $known; do
	p=${k%%:*}
	same "$p" "${k#*:}" || continue
	[ "$g" = "$leader" ] && continue
	descendants "${k%%:*}"
	one "${k%%:*}" "${k#*:}"
	for y in $below; do
		same "${y%%:*}" "${y#*:}" && [ "$g" != "$leader" ] && one "${y%%:*}" "${y#*:}"
	done
done
round=0
while [ $round -lt 10 ]; do
	round=$((round + 1)) found=
	look
	for w in $rows; do
		split "$w"
		case $z in Z | X) continue ;; esac
		[ "$st" -ge "$born" ] || continue
		c=$p:$st
		{ tr '\0' '\n' <"/proc/$p/environ" | grep -qxF -e "$mark"; } 2>/dev/null || continue
		found=1
		one "${c%%:*}" "${c#*:}"
	done
	[ -n "$found" ] || break
done
exit 0
`
