// The vectors of tests/vectors against device.mjs, in node and in a browser.

/** Return the failures of all vectors, as texts; `vectors` are the parsed files by name. */
export async function failures(device, vectors) {
  const found = [];
  const utf8 = (text) => new TextEncoder().encode(text);
  const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
  const expect = (name, condition) => condition || found.push(name);
  const read = async (text) => device.checkCertificate(device.parseCanonical(text));
  const nameOf = async (text) => device.toBase64url(await device.sha256(utf8(text)));
  const refused = async (name, defects, action) => {
    try {
      await action();
      found.push(`${name}: accepted`);
    } catch (error) {
      const isNamed = defects ? defects.includes(error.defect) : error.defect;
      if (!isNamed) found.push(`${name}: ${error.defect ?? error} is none of ${defects}`);
    }
  };

  for (const { name, text, ratio, inputs } of vectors.certificates.positive) {
    const channel = await read(text);
    expect(name, same(ratio, channel.ratio) && same(inputs.filter((label) => label !== "NULL"), channel.labels));
  }
  for (const { name, text, defect } of vectors.certificates.negative) {
    // JavaScript has one kind of number, and keeps the last of repeated keys: the canonical form refuses these texts.
    const unlike = { "not json": ["not canonical", "number"], "non-integer": ["not canonical"], ratio: ["not canonical", "number"] };
    const wide = name === "a scale with a number beyond floats" ? ["number"] : [];
    await refused(name, [defect, ...(unlike[defect] ?? []), ...wide], () => read(text));
  }
  for (const { name, certificate, answers, random, report } of vectors.sampling.vectors) {
    const { cumulative } = await read(certificate);
    const rows = answers.map((answer) => cumulative[answer]);
    expect(name, same(report, device.sample(rows, device.fromHex(random))));
  }
  for (const { name, link, link_without_service: short, campaign, slot, token, report, body, receipt } of vectors.tokens.vectors) {
    const expected = { name: campaign, token, slot };
    expect(name, same(expected, device.parseLink(link)) && same(expected, device.parseLink(short)));
    await device.checkReceipt(receipt, campaign, report, device.fromHex(body)).catch(() => found.push(`${name}: receipt`));
    const others = [receipt, campaign, report, device.fromHex(`${body}00`)];
    await refused(`${name}: other bytes`, ["receipt"], () => device.checkReceipt(...others));
  }
  for (const { address, normal, some_browsers: some } of vectors.addresses.vectors) {
    expect(`address ${address}`, device.isAddress(address) === (address === normal) || some === address);
    expect(`URL ${address}`, normal === null || new URL(address).href.replace(/\/$/, "") === normal);
  }
  for (const { name, text, found, defect } of vectors.links.vectors) {
    const { url, ...expected } = found ?? {};
    expect(`link: ${name}`, same(found ? expected : null, device.parseLink(text)));
    expect(`cut link: ${name}`, (defect === "link-cut") === device.isCutLink(text));
  }
  for (const vector of vectors.campaigns.vectors) {
    const campaign = await device.readCampaign(utf8(vector.campaign), vector.campaign_name);
    const tasks = await device.readTasks(utf8(vector.parts[Math.floor(vector.slot / 100)]), campaign, vector.slot);
    const answers = {};
    vector.answers.forEach((answer, cell) => answer !== null && (answers[tasks[cell]] = answer));
    const body = device.drawBody(campaign, vector.slot, tasks, answers, vector.level, device.fromHex(vector.random));
    expect(vector.name, same(vector.tasks, tasks) && vector.body === device.toHex(body));
    await refused(`${vector.name}: another link`, ["hash"], () => device.readCampaign(utf8(`${vector.campaign} `), vector.campaign_name));
  }
  const [offered] = vectors.campaigns.vectors.filter(({ level }) => level === 1);
  const campaign = await device.readCampaign(utf8(offered.campaign), offered.campaign_name);
  await refused("no level", ["level"], () => device.drawBody(campaign, 0, [0], {}, undefined));
  for (const { name, level, levels, accepted } of vectors.levels.vectors) {
    const asked = { groups: null, channels: [0, 1, 2], levels: levels ?? undefined };
    const choose = () => device.channelOf(asked, 0, 0, device.parseCanonical(level));
    if (accepted) expect(`level ${name}`, choose() === Number(level));
    else await refused(`level ${name}`, ["level", "not canonical"], choose);
  }
  const readers = {
    campaign: async ({ text }) => device.readCampaign(utf8(text), await nameOf(text)),
    certificate: ({ text }) => read(text),
    ledger: ({ text }) => device.readLedger(text),
    part: async ({ text, campaign }) => device.readTasks(utf8(text), await readers.campaign({ text: campaign }), 0),
  };
  for (const { kind, field, values, ...texts } of vectors.numbers.vectors.filter(({ kind }) => kind in readers)) {
    for (const [raw, seal] of values) {
      const filled = (text) => text?.replace('"@"', raw).replace('"#"', `"${seal}"`);
      const action = async () => readers[kind]({ text: filled(texts.text), campaign: filled(texts.campaign) });
      await refused(`${kind}: ${raw} in ${field}`, undefined, action);
    }
  }
  for (const { name, campaign, defects } of vectors.refused_campaigns.vectors) {
    await refused(name, defects, async () => device.readCampaign(utf8(campaign), await nameOf(campaign)));
  }
  for (const { name, campaign, part, defects } of vectors.refused_parts.vectors) {
    const checked = await device.readCampaign(utf8(campaign), await nameOf(campaign));
    await refused(name, defects, () => device.readTasks(utf8(part), checked, 0));
  }
  return found;
}
