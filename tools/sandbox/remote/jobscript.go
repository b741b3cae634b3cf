package remote

// A background command of a remote environment is a directory there, <private>/jobs/<id>, that only the user may enter:
//
//	state      "pid start boot mark input", of the leader: the process that runs the command's shell
//	log.<n>    the output from its byte n on; the newest ones stay
//	exit       the exit code, written after the output
//	in         a pipe, where input is kept open: lines "d" and escaped bytes, or "c" for the end
//	closed     the input was ended
//	stdin      what the command is given to read first
//	out, feed  pipes within

// jobMakeScript makes the directory of a job. Its arguments: the directory of all jobs, the id. It prints the name of
// the machine's last start. Jobs that ended more than a day ago are removed, and the oldest when there are many.
const jobMakeScript = `jobs=$1 id=$2
mkdir -m 700 -- "$jobs" 2>/dev/null
old() {
	[ -n "$(find "$1" -prune -mmin +1440 2>/dev/null)" ]
}
ended() {
	[ -f "$1/exit" ] && return
	pid=
	{ read -r pid rest <"$1/state"; } 2>/dev/null
	! [ -d "/proc/${pid:-none}" ] && old "$1"
}
for job in "$jobs"/*; do
	if [ -f "$job/exit" ]; then
		if old "$job/exit"; then rm -rf -- "$job"; fi
	elif [ -d "$job" ] && ended "$job"; then
		rm -rf -- "$job"
	fi
done
ls -1t -- "$jobs" | tail -n +129 | while read -r name; do
	if ended "$jobs/$name"; then rm -rf -- "$jobs/$name"; fi
done
mkdir -m 700 -- "$jobs/$id" || exit 1
mkfifo -m 600 -- "$jobs/$id/in" "$jobs/$id/out" "$jobs/$id/feed" || exit 1
boot=
{ read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null
printf '%s' "${boot:-none}"
`

// jobHead comes before wrapHead in the script that runs a job's shell. Its arguments are the directory, how the input
// is ("open", "file" or "none"), the mark, the name of the machine's last start and how many bytes of output are kept,
// before those of wrapHead.
const jobHead = `job=$1 input=$2 mark=$3 boot=$4 keep=$5
shift 5
`

// jobBody comes after the report of the start. The leader outlives a TERM of its group, and so does the process that
// writes the log, so that what is printed at the end and the exit code are kept. A segment of the log is about
// half of what is kept.
// What can't be stored (a full disk) is left out.
const jobBody = `
case $status in ok | moved) ;; *) exit 0 ;; esac
exec </dev/null >/dev/null
trap : TERM HUP INT
log() {
	trap '' TERM HUP INT
	at=0
	while :; do
		segment=$(printf '%s/log.%015d' "$job" "$at")
		dd bs=16384 count=$(((keep + 16383) / 16384)) of="$segment" || { cat >/dev/null; break; }
		n=$(($(wc -c <"$segment")))
		if [ $n = 0 ]; then
			rm -f -- "$segment"
			break
		fi
		at=$((at + n))
		set -- "$job"/log.*
		while [ $# -gt 1 ]; do
			base=${2##*.}
			base=${base#"${base%%[!0]*}"}
			[ $((at - ${base:-0})) -ge "$keep" ] || break
			rm -f -- "$1"
			shift
		done
	done
	: >"$job/logged"
}
feed() {
	[ -f "$job/stdin" ] && cat "$job/stdin"
	while IFS= read -r l; do
		case $l in
		d*) printf '%b' "${l#d}" || break ;;
		*) break ;;
		esac
	done
}
log <"$job/out" &
case $input in
open)
	# exec, because a shell keeps a copy of what it redirects for a function
	(exec 4>&- <"$job/in" >"$job/feed" && feed) &
	from=$job/feed
	;;
file) from=$job/stdin ;;
*) from=/dev/null ;;
esac
(exec "$@" <"$from" >"$job/out" 2>&1 4>&-)
code=$?
n=0
until [ -e "$job/logged" ] || [ $n -ge 15 ]; do
	n=$((n + 1))
	sleep 0.02 || { sleep 1; n=15; }
done
printf '%s\n' "$code" >"$job/exit.new" && mv -f -- "$job/exit.new" "$job/exit"
exit 0
`

// jobStateScript writes down who the leader is, and opens the input, before the start is reported: what is written then
// is kept. The feeder reads the end of the file when the leader is gone.
const jobStateScript = `
case $status in ok | moved)
	[ $input != open ] || exec 4<>"$job/in"
	printf '%s %s %s %s %s\n' "$$" "$start" "$boot" "$mark" "$input" >"$job/state.new" && mv -f -- "$job/state.new" "$job/state" || status=store
	;;
esac
`

// jobPollScript says how a job is and prints the new part of its log. Its arguments: the directory, the number of the
// first byte that is wanted. It prints a line "alive|ended|lost code", and for each piece of the log a line with the
// number of its first byte and its length, and the bytes. It looks whether the job ended before it reads the log.
const jobPollScript = `job=$1 from=$2
pid=0 start=0 boot= state=lost code=-
[ -d "$job" ] || { printf '%s: No such file or directory\n' "$job" >&2; exit 1; }
{ read -r pid start boot rest <"$job/state"; } 2>/dev/null
now=
{ read -r now </proc/sys/kernel/random/boot_id; } 2>/dev/null
born() {
	s= l=
	{ while IFS= read -r l || [ -n "$l" ]; do s="$s$l "; done <"/proc/$pid/stat"; } 2>/dev/null
	set -- ${s##*) }
	[ $# -ge 20 ] || return 1
	case $1 in Z | X) return 1 ;; esac
	shift 19
	[ "$1" = "$start" ]
}
[ "$boot" = "${now:-none}" ] && born && state=alive
if [ -f "$job/exit" ]; then
	state=ended
	read -r code <"$job/exit"
fi
printf '%s %s\n' "$state" "$code"
for f in "$job"/log.*; do
	[ -f "$f" ] || continue
	base=${f##*.}
	base=${base#"${base%%[!0]*}"}
	base=${base:-0}
	size=$(($(wc -c <"$f")))
	[ $((base + size)) -gt "$from" ] || continue
	skip=$((from - base))
	[ $skip -gt 0 ] || skip=0
	printf '%s %s\n' $((base + skip)) $((size - skip))
	tail -c +$((skip + 1)) "$f" | head -c $((size - skip))
	from=$((base + size))
done
`

// jobWriteScript sends its input, a line that a pipe takes whole or not at all. It ends with code 3 when the job
// has ended, with 5 when its input was ended, and with 4 when nobody took the line in time.
const jobWriteScript = `job=$1 end=$2
pid=none
{ read -r pid rest <"$job/state"; } 2>/dev/null
[ -d "/proc/$pid" ] && [ ! -e "$job/exit" ] || exit 3
[ ! -e "$job/closed" ] || exit 5
limit=
command -v timeout >/dev/null && limit='timeout 5'
if $limit cat 1<>"$job/in"; then
	[ -z "$end" ] || : >"$job/closed"
	exit 0
fi
[ ! -e "$job/exit" ] || exit 3
exit 4
`
