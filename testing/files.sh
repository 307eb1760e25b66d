#!/bin/sh
# In a mount namespace of its own: makes files below /dev and /sys/class, then runs a command.
# files.sh COUNT [PATH TEXT]... COMMAND..., where COUNT is how many words the files take.
set -eu

# A folder that files can be made in: a fresh one with everything that was there.
loosen() {
    fresh=$(mktemp -d)
    mount -t tmpfs none "$fresh"
    for entry in "$1"/*; do
        name=$fresh/${entry##*/}
        if [ -L "$entry" ]; then
            cp -P "$entry" "$name"
        elif [ -d "$entry" ]; then
            mkdir "$name"
            mount --rbind "$entry" "$name"
        elif [ -e "$entry" ]; then
            : >"$name"
            mount --bind "$entry" "$name"
        fi
    done
    mount --rbind "$fresh" "$1"
    umount -l "$fresh"
    rmdir "$fresh"
}

loosen /dev
loosen /sys/class
# A machine that has such devices doesn't lend them.
for folder in /dev/dri /sys/class/drm; do
    mkdir -p "$folder"
    mount -t tmpfs none "$folder"
done
count=$1
shift
while [ "$count" -gt 0 ]; do
    mkdir -p "$(dirname "$1")"
    printf '%s' "$2" >"$1"
    shift 2
    count=$((count - 2))
done
exec "$@"
