# Defines the function `warm NAME FOLDER OUTPUT ERRORS COMMAND...` for bash: in a restored VM, run a
# command line of Python in FOLDER as a fork of the Python that has imported everything, with the
# standard output and the error output in these files. The exit status is that of the command.
# warm_python.py describes the request, whose name is NAME.
warm() {
    local request=/run/warm/requests/$1 folder=$2 output=$3 errors=$4 never
    shift 4
    { printf '%s\0' "$folder" /dev/null "$output" "$errors" $# "$@"; env -0; } >"$request"
    echo "${request##*/}" >/run/warm/bell
    # reading a pipe without a writer sleeps without starting a process
    [ -p /run/never ] || mkfifo /run/never
    exec {never}<>/run/never
    until [ -e "$request.status" ]; do read -r -t 0.2 -u "$never"; done
    exec {never}>&-
    local status
    status=$(<"$request.status")
    return $((status < 0 ? 128 - status : status)) # negative: ended by a signal
}
