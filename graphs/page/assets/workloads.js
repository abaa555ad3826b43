// SPDX-License-Identifier: GPL-2.0-or-later
// Of a page of several workloads: the one that its address names (?workload=1) is shown. All the
// other scripts know one workload, so that another one is another load of the page.
"use strict";

{
  const parts = document.querySelectorAll("template.workload");
  const wanted = new URLSearchParams(location.search).get("workload");
  const number = Math.trunc(Number(wanted)) || 0;
  const index = parts[number] ? number : 0;
  parts[index].replaceWith(parts[index].content);
  document.querySelector(`[data-workload="${index}"]`).setAttribute("aria-current", "true");
}
