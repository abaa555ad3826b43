# SPDX-License-Identifier: GPL-2.0-or-later
# Runs the real gitk in the repository of the current folder, and prints how many commits it has.
#
# usage: wish gitk.tcl GITK COMMITS EVERY
#
# GITK is the program itself, whose last line begins to read commits. This one prints `ready` when
# gitk's window is there, reads them when a line is read, and prints `pass 1 commits N` whenever N
# has passed a multiple of EVERY. It ends when all are in the window.
#
# With EVERY 0 it prints and reads no line, and stays: its window is shown when all commits are in
# it, below the others' (x_server.py), and keys go to the field of the commit's id.

lassign $argv program commits every
set argv [list --max-count=$commits]
set argc 1
set argv0 gitk

set file [open $program]
fconfigure $file -encoding utf-8
set script [read $file]
close $file
# Nobody would close a window with an error.
set script [string map {{tkwait window $top} {puts stderr $msg; exit 1}} $script]
set begin "\ngetcommits {}\n"
set end [string first $begin $script]
if {$end < 0 || $end != [string last $begin $script]} {
    puts stderr "$program does not begin to read commits where this suite expects it"
    exit 1
}
if {!$every} {
    wm withdraw .
    # The cursor of a ttk::entry would always blink: a picture of it would differ between two keys.
    set plain [list {tkwait visibility .} {} {${NS}::entry $sha1entry} {entry $sha1entry}]
    foreach {theirs ours} $plain {
        if {[string first $theirs $script] < 0} {
            puts stderr "$program has no '$theirs' where this suite expects it"
            exit 1
        }
    }
    set script [string map $plain $script]
    set end [string first $begin $script]
    # Nobody would read an error in a window.
    proc bgerror {message} {
        puts stderr $message
        exit 1
    }
}
uplevel #0 [string range $script 0 $end]

fconfigure stdout -buffering line
set printed 0

proc print_commits {call code result op} {
    global commitidx curview every printed
    if {$commitidx($curview) / $every > $printed / $every} {
        set printed $commitidx($curview)
        puts "pass 1 commits $printed"
    }
}

proc show_when_complete {call code result op} {
    global curview sha1entry viewcomplete
    if {!$viewcomplete($curview) || [wm state .] ne "withdrawn"} return
    $sha1entry delete 0 end
    $sha1entry configure -insertofftime 0
    wm geometry . 760x400+500+800
    wm deiconify .
    focus -force $sha1entry
}

proc end_when_complete {call code result op} {
    global commitidx curview printed viewcomplete
    if {!$viewcomplete($curview)} return
    # The rows are drawn before the last line is printed.
    update
    if {$commitidx($curview) != $printed} {
        puts "pass 1 commits $commitidx($curview)"
    }
    exit 0
}

# The clone has no files, which gitk would show as changes.
set showlocalchanges 0
if {!$every} {
    trace add execution chewcommits leave show_when_complete
    getcommits {}
    return
}
trace add execution getcommitlines leave print_commits
trace add execution chewcommits leave end_when_complete
puts ready
# The end of standard input alone: the recorder is gone.
if {[gets stdin] eq "" && [eof stdin]} {exit 1}
getcommits {}
