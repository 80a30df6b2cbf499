# A server's program by its name: `-h source` is that server's socket, as root unless the command names an account.
# Arguments that are no host go on as they are. Without a host: the source.
host=source user=root arguments=() connects=yes
while [ $# -gt 0 ]; do
    case $1 in
        -h) host=$2; shift ;;
        -h?*) host=${1#-h} ;;
        --host=*) host=${1#--host=} ;;
        -u|--user=*|-u?*) user=; arguments+=("$1"); [ "$1" != -u ] || { arguments+=("$2"); shift; } ;;
        *) arguments+=("$1") ;;
    esac
    shift
done
case $0 in *binlog) connects= ;; esac
socket=SOCKET_$host
first=(--no-defaults)
[ -z "$connects" ] || first+=("--socket=${!socket}" --default-character-set=utf8mb4)
[ -z "$connects" ] || [ -z "$user" ] || first+=("--user=$user")
exec "${PROGRAM[@]}" "${first[@]}" "${arguments[@]}"
